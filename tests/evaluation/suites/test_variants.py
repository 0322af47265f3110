"""A scan of an exact law, computed by hand; where the wild type comes from; what is wrong with a file."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import besag
from besag.errors import BesagError
from besag.evaluation.evaluate import evaluate
from besag.variants.mutations import RESIDUES

WEIGHTS = np.random.default_rng(3).gamma(1.0, size=(20, 20, 20)) + 0.1
AT = RESIDUES.index
DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "dms_small"


@pytest.fixture(scope="module")
def lm():
    return besag.load(besag.Table(WEIGHTS, symbols=list(RESIDUES)))


def scan(folder, rows, name="toy.csv", head="mutant,mutated_sequence,DMS_score"):
    file = folder / name
    file.write_text("\n".join([head, *rows]) + "\n")
    return file


def singles(offset=0):
    """All mutants of the first residue of MKT, with what was "measured"."""
    noise = np.random.default_rng(0).normal(size=20)
    return [f"M{1 + offset}{one},{one}KT,{noise[at]:.4f}" for at, one in enumerate(RESIDUES) if one != "M"], noise


def test_by_hand(lm, tmp_path):
    rows, noise = singles()
    found = evaluate(lm, "variants", data=scan(tmp_path, rows))
    log_w = np.log(WEIGHTS[:, AT("K"), AT("T")])
    effects = np.array([log_w[AT(one)] - log_w[AT("M")] for one in RESIDUES if one != "M"])
    measured = np.array([round(noise[AT(one)], 4) for one in RESIDUES if one != "M"])
    np.testing.assert_allclose([row["effect"] for row in found.parts[0].rows], effects, atol=1e-6)
    assert found["Spearman"].value == pytest.approx(stats.spearmanr(effects, measured)[0])
    assert found["Spearman"].n == 19
    assert found["Spearman"].se > 0
    each = next(one for one in found.parts[0].figures if one.name == "Spearman" and one.group == "toy")
    assert each.low < each.value < each.high


def test_every_source_of_the_wild_type_gives_the_same(lm, tmp_path):
    rows, _ = singles(offset=10)
    by_sequence = evaluate(lm, "variants", data=scan(tmp_path, rows), offset=10)
    (tmp_path / "wt.fasta").write_text(">toy\nMKT\n")
    plain = scan(tmp_path, rows, "same.csv")
    ways = {"FASTA": str(tmp_path / "wt.fasta"), "itself": "MKT"}
    for given in ways.values():
        found = evaluate(lm, "variants", data=plain, wild_type=given, offset=10)
        assert found["Spearman"].value == by_sequence["Spearman"].value
    column = scan(tmp_path, [f"{row},MKT" for row in rows], "column.csv", "mutant,mutated_sequence,DMS_score,wt")
    found = evaluate(lm, "variants", data=column, wild_type="wt", offset=10)
    assert found["Spearman"].value == by_sequence["Spearman"].value
    whole = [*rows, "K12R,MRT,0.5", "T13A,MKA,0.1"]
    found = evaluate(lm, "variants", data=scan(tmp_path, whole, "whole.csv"), wild_type="mutations")
    again = evaluate(lm, "variants", data=scan(tmp_path, whole, "whole.csv"), offset=10)
    assert found["Spearman"].value == again["Spearman"].value


def test_double_mutants_by_a_joint(lm, tmp_path):
    file = scan(tmp_path, ["M1A:T3S,AKS,1", "M1A,AKT,0.5", "T3S,MKS,0.2"])
    found = evaluate(lm, "variants", data=file, strategy="ag")
    double, single, _ = found.parts[0].rows
    log_w = np.log(WEIGHTS[:, AT("K")])
    M, T, A, S = map(AT, "MTAS")
    ratio = log_w[A, S] + log_w[M, T] - log_w[A, T] - log_w[M, S]
    assert double["epistasis"] == pytest.approx(ratio, abs=1e-4)
    assert double["mutations"] == 2
    assert "epistasis" not in single
    json.dumps(found.parts[0].rows)


def test_blocks_do_not_matter(lm, tmp_path):
    from besag.evaluation.running import items_of
    from besag.evaluation.suite import suite

    rows, _ = singles()
    one = suite("variants")
    items = items_of(one, scan(tmp_path, rows))
    whole, parts = ([given[0].effect for _, given, _ in one.answers(lm, items, None, size)] for size in (None, 4))
    np.testing.assert_allclose(whole, parts, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (["M1A,AKT,0.5", "K2A,MAG,0.1"], {}, "by 'mutated_sequence' the wild type differs"),
        (["M1A,CKT,0.5"], {}, "'mutated_sequence' is not what 'M1A' makes"),
        (["K1A,AKT,0.5"], {"wild_type": "MKT"}, "residue 1 is 'K', and the wild type has 'M'"),
        (["M1A,AKT,high"], {}, "'DMS_score' is 'high', not a number"),
        (["M1A,AKT,"], {}, "not a number"),
        (["M1A,AKT,0.5"], {"measured": "fitness"}, "has no 'fitness'"),
        (["M1A,AKT,0.5"], {"strategy": "best"}, "no method of scoring variants is called 'best'"),
        (["M1A:K2A:T3S,AAS,0.5"], {"strategy": "ag"}, "is a joint of two"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_quoted(lm, tmp_path, rows, options, said):
    with pytest.raises(BesagError) as error:
        evaluate(lm, "variants", data=scan(tmp_path, rows), **options)
    assert said in str(error.value)


def test_no_wild_type(lm, tmp_path):
    file = scan(tmp_path, ["M1A,0.5"], head="mutant,DMS_score")
    with pytest.raises(BesagError, match="the wild type must be said"):
        evaluate(lm, "variants", data=file)


@pytest.mark.skipif(not DATA.exists(), reason="the scans are not there: set BESAG_DATA")
def test_the_shared_scans_are_read():
    from besag.evaluation.running import items_of
    from besag.evaluation.suite import suite

    items = items_of(
        suite("variants", measured="log", wild_type="mutations"), DATA / "PABP_YEAST_Fields2013-singles.csv"
    )
    assert len(items) == 1188
    assert items[0].about["variant"] == "G126A"
    assert items[0].about["offset"] == 125
