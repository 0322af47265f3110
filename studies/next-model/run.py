"""Train the next bundled model in stages on a machine that is reached by calls of limited size and length.

A call carries at most 64 MiB there and brings at most 8 files of 16 MiB back. So text travels in parts, a stage runs
detached from the call that started it, and each model is brought back while the stage runs. README.md has the calls.

    here    run.py pack [COMMIT]                   runs/next-model/part-1 …: text, pairs, the commit's source; weights
    here    run.py aside | back                    move what need not travel out of the tree, and back
    there   run.py collect PART                    keep what a call carried
    there   run.py start JOB [KEY=VALUE …]         one of JOBS, detached; the pairs change keys of its recipe
    there   run.py start measure MODEL …           measure.py on folders below the machine's own
    there   run.py wait SECONDS                    return early with the next model (int8), measurement or failure
    here    run.py join FILES FOLDER               a model's folder from what a call brought back
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "runs" / "next-model"
THERE = Path(os.environ.get("NEXT_MODEL", "/tmp/next-model"))
SHARED = ROOT.parent / "shared"
WEIGHTS = ROOT / "weights" / "next-model"  # of the stage before
PARTS = (("part-00", "part-05"), ("part-01", "part-06"), ("part-02", "part-07"), ("part-03",))
HELD_OUT = ("valid", "heldout-court")
SOURCE = ("src", "recipes", "studies", ":!src/besag/models/*/*.safetensors")
BIG = ("src/besag/models/small-en/model.int8.safetensors", "docs", "tests", "benchmarks", "recipes", "weights")
CHUNKS_HELD_OUT = 150  # of part 03
PAIRS_EACH = 100
SLICE = 15 << 20  # bytes
STAGE = "medium-en"  # the run whose models are brought back

SHORT = (
    "data.batch_tokens=131072",
    "schedule.minutes=",
    "schedule.tokens=150_000_000",
    "schedule.decay=1.0",
    "schedule.floor=0.0",
    "run.models_every=0",
)
AGAIN = (  # 200 steps from a saved model, at the learning rate that the first stage ends with
    'data.unit="segments"',
    "data.batch_tokens=32768",
    "schedule.minutes=",
    "schedule.steps=200",
    'schedule.shape="constant"',
    "optimizer.matrix_lr=2e-3",
    "optimizer.lr=1.5e-3",
    "masking.rate=0.24",
    "masking.end_rate=0.24",
    "run.compile=false",
    "run.log_every=20",
)
JOBS = {  # name: (recipe, the first parts of text it reads or None for all, what it changes)
    "throughout": ("medium-en", 1, (*SHORT, "objective.options.lead=0.0")),
    "first": ("medium-en", 1, (*SHORT, "objective.options.lead=0.4")),
    "from-trained": ("medium-en-last", 1, (*AGAIN, f'model.start="{THERE}/{STAGE}/models/step-00002000"')),
    "from-int8": ("medium-en-last", 1, (*AGAIN, f'model.start="{THERE}/int8/step-00002000"')),
    "stage-1": ("medium-en", None, ()),
    "stage-2": (
        "medium-en",
        None,
        (
            f'model.start="{THERE}/start"',
            "tokenizer.path=",
            "model.config=",
            "objective.options.lead=0.0",
            "masking.rate=0.24",
            "masking.end_rate=0.2",
            "optimizer.matrix_lr=3.5e-3",
            "optimizer.lr=2.6e-3",
            "schedule.warmup=0.03",
            "run.seed=2",
        ),
    ),
    "last": ("medium-en-last", None, (f'model.start="{THERE}/start"',)),
}


def pack(commit: str | None) -> None:
    """Write one folder for each call: its share of the text; in the first, source, held-out text and pairs as well.

    Without a commit, the source is that of the commit that trained the weights, and these travel in the last folder.
    """
    shutil.rmtree(HERE, ignore_errors=True)
    resumed = commit is None
    commit = git("rev-parse", commit or (WEIGHTS / "commit").read_text().strip()).decode().strip()
    for number, names in enumerate(PARTS, 1):
        part = HERE / f"part-{number}"
        part.mkdir(parents=True)
        for name in (*names, *(HELD_OUT if number == 1 else ())):
            shutil.copyfile(SHARED / "corpus" / f"{name}.txt.xz", part / f"{name}.txt.xz")
    first = HERE / "part-1"
    (first / "commit").write_text(commit + "\n")
    (first / "source.tar.xz").write_bytes(lzma.compress(git("archive", commit, *SOURCE)))
    (first / "pairs").mkdir()
    for file in sorted((SHARED / "data" / "blimp").glob("*.jsonl")):
        (first / "pairs" / file.name).write_text("".join(file.open(encoding="utf-8").readlines()[:PAIRS_EACH]))
    if resumed:
        shutil.copytree(WEIGHTS, HERE / f"part-{len(PARTS) + 1}" / "start")
    for part in sorted(HERE.iterdir()):
        print(part.relative_to(ROOT), f"{sum(file.stat().st_size for file in part.rglob('*')) / 2**20:.1f} MiB")


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def aside(back: bool) -> None:
    """Move large tracked files into an ignored folder, or back to where they were."""
    away = ROOT / "runs" / "aside"
    for name in BIG:
        old, new = (away / name, ROOT / name) if back else (ROOT / name, away / name)
        if old.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)


def collect(part: Path) -> None:
    """Keep a part on the machine: text is unpacked as recipes name it, source as jobs import it."""
    (THERE / "text").mkdir(parents=True, exist_ok=True)
    for name in ("pairs", "start", "commit", *(f"{name}.txt.xz" for name in HELD_OUT)):
        if (part / name).is_dir():
            shutil.copytree(part / name, THERE / name, dirs_exist_ok=True)
        elif (part / name).exists():
            shutil.copyfile(part / name, THERE / name)
    if (part / "source.tar.xz").exists():
        with tarfile.open(part / "source.tar.xz") as source:
            source.extractall(THERE / "source", filter="data")
    for file in part.glob("part-0*.txt.xz"):
        if file.name != "part-03.txt.xz":
            shutil.copyfile(file, THERE / "text" / file.name)
            continue
        with lzma.open(file, "rt", encoding="utf-8") as whole:
            chunks = [chunk for chunk in whole.read().split("\n\n") if chunk.strip()]
        for name, some in (("valid-03", chunks[:CHUNKS_HELD_OUT]), ("text/train-03", chunks[CHUNKS_HELD_OUT:])):
            (THERE / f"{name}.txt").write_text("".join(f"{chunk.strip()}\n\n" for chunk in some), encoding="utf-8")


def command(job: str, changes: list[str]) -> list[str]:
    """Return the command of a job: training with changed keys of its recipe, or measuring the models that are named."""
    if job == "measure":
        models = [str(THERE / name) for name in changes]
        texts = [*(str(THERE / f"{name}.txt.xz") for name in HELD_OUT), str(THERE / "valid-03.txt")]
        script = [str(THERE / "source/studies/next-model/measure.py"), *models]
        return [sys.executable, *script, "--pairs", *pairs(), "--texts", *texts, "--save", str(THERE / "measured")]
    sets = [word for change in (*recipe_changes(job), *changes) for word in ("--set", change)]
    return [sys.executable, "-m", "besag", "train", str(THERE / "source/recipes" / f"{JOBS[job][0]}.toml"), *sets]


def recipe_changes(job: str) -> list[str]:
    _, parts, own = JOBS[job]
    names = [name for part in PARTS[:parts] for name in part]
    text = [str(THERE / "text" / ("train-03.txt" if name == "part-03" else f"{name}.txt.xz")) for name in names]
    output = STAGE if job.startswith("stage") or job == "last" else job
    places = {
        "data.train": text,
        "data.valid": [str(THERE / "valid.txt.xz")],
        "data.cache": str(THERE / "cache"),
        "run.output": str(THERE / output),
    }
    return [*(f"{key}={json.dumps(value)}" for key, value in places.items()), *own]


def pairs() -> list[str]:
    return [str(file) for file in sorted((THERE / "pairs").glob("*.jsonl"))]


def start(job: str, changes: list[str]) -> None:
    """Start a job in a process session of its own; its exit status is written when it ends."""
    if job == "tokenise":
        words = [sys.executable, str(Path(__file__).resolve()), "tokenise", *changes]
    else:
        words = command(job, changes)
    (THERE / "logs").mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(THERE / "source/src"),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
    }
    shell = 'log=$1; shift; "$@" > "$log" 2>&1; echo $? > "$log.exit"'
    log = THERE / "logs" / f"{job}.log"
    for left in (log.with_suffix(".log.exit"), THERE / "sent" / f"{log.name}.exit"):
        left.unlink(missing_ok=True)
    subprocess.Popen(["bash", "-c", shell, "bash", str(log), *words], env=environment, start_new_session=True)


def tokenise(job: str) -> None:
    """Write the cache of tokens that a job reads, so that several jobs need not."""
    from besag.conditionals.loading import read_vocabulary
    from besag.training import recipe as recipes
    from besag.training.run.ranks import Ranks
    from besag.training.run.text import Text

    path = THERE / "source/recipes" / f"{JOBS[job][0]}.toml"
    recipe = recipes.read(path, recipe_changes(job))
    name = str(recipe.tokenizer.path or recipe.model.start)
    Text(recipe, read_vocabulary(name, name), Ranks(), resume=False)


def wait(seconds: float) -> None:
    """Watch until there is something to bring back or a job has ended, and copy it to $OUT."""
    out, sent = Path(os.environ["OUT"]), THERE / "sent"
    sent.mkdir(exist_ok=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        models = [*sorted((THERE / STAGE / "models").glob("step-*")), THERE / STAGE / "model"]
        ready = [model for model in models if (model / "README.md").exists() and not (sent / model.name).exists()]
        ended = [file for file in (THERE / "logs").glob("*.exit") if not (sent / file.name).exists()]
        if ready:
            bring(ready[0], out)
            (sent / ready[0].name).touch()
            break
        if ended:
            for file in ended:
                print("ended:", file.stem, "with", file.read_text().strip())
                (sent / file.name).touch()
            for file in (THERE / "measured").glob("*.json"):
                shutil.copyfile(file, out / file.name)
            break
        time.sleep(1)
    for log in sorted((THERE / "logs").glob("*.log")):
        last = log.read_bytes()[-600:].decode(errors="replace").replace("\r", "\n").splitlines()[-4:]
        print(f"== {log.name}", *last, sep="\n")
    for log in sorted(THERE.glob("*/log.jsonl")):
        shutil.copyfile(log, out / f"{log.parent.name}.log.jsonl")


def bring(model: Path, out: Path) -> None:
    """Copy a model to `out` as a tar file in slices, its weights in int8."""
    from besag.training.run import rounding

    folder = THERE / "int8" / model.name
    print("cost of int8:", rounding.export(model, folder, "int8", force=True).words)
    shutil.copyfile(THERE / "commit", folder / "commit")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, model.name)
    whole = packed.getvalue()
    for number, begin in enumerate(range(0, len(whole), SLICE), 1):
        (out / f"{model.name}.tar.{number}").write_bytes(whole[begin : begin + SLICE])


def join(files: list[Path], folder: Path) -> None:
    """Write a model's folder from the slices of its tar file."""
    whole = b"".join(file.read_bytes() for file in sorted(files))
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        archive.extractall(folder, filter="data")
    print(*sorted(folder.rglob("*")), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    calls = parser.add_subparsers(dest="call", required=True)
    calls.add_parser("pack").add_argument("commit", nargs="?")
    calls.add_parser("aside")
    calls.add_parser("back")
    calls.add_parser("collect").add_argument("part", type=Path)
    one = calls.add_parser("start")
    one.add_argument("job", choices=[*JOBS, "measure", "tokenise"])
    one.add_argument("changes", nargs="*")
    calls.add_parser("tokenise").add_argument("job", choices=JOBS)
    calls.add_parser("wait").add_argument("seconds", type=float)
    one = calls.add_parser("join")
    one.add_argument("files", type=Path, nargs="+")
    one.add_argument("folder", type=Path)
    given = parser.parse_args()
    match given.call:
        case "pack":
            pack(given.commit)
        case "aside" | "back":
            aside(given.call == "back")
        case "collect":
            collect(given.part)
        case "start":
            start(given.job, given.changes)
        case "tokenise":
            tokenise(given.job)
        case "wait":
            wait(given.seconds)
        case "join":
            join(given.files, given.folder)


if __name__ == "__main__":
    main()
