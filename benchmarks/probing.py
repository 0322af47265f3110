"""What can be read from AntiBERTy's vectors of antibody chains by a plane, beside the shares of the 20 residues.

    PYTHONPATH=src python3 benchmarks/probing.py --data FOLDER/protein_antibody --model ANTIBERTY

Labels: the family of the germline V gene (IGHV3, IGKV1 …), and what the antibody binds (protein, peptide, hapten …), of
which no chain says it by itself. Labels of fewer than ten chains are left out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

import besag
from antibodies import FILES, spaced
from besag.variants.mutations import RESIDUES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of SAbDab's Parquet files")
    parser.add_argument("--model", required=True, help="AntiBERTy, as benchmarks/antiberty.py makes it")
    parser.add_argument("--limit", type=int, default=240)
    chosen = parser.parse_args()
    names = ["sequence", "v_gene", "antigen_type_max"]
    rows = parquet.read_table(chosen.data / FILES["train"], columns=names).to_pylist()[: chosen.limit]
    lm = besag.load(chosen.model, device="cpu", progress=False)
    vectors = np.asarray(lm.embed([spaced(row["sequence"]) for row in rows]))
    shares = np.array([[row["sequence"].count(one) / len(row["sequence"]) for one in RESIDUES] for row in rows])
    families = [row["v_gene"].split("-")[0] for row in rows]
    of = {"v_family": families, "antigen": [row["antigen_type_max"] for row in rows]}
    for name, labels in of.items():
        many = {label for label, count in Counter(labels).items() if count >= 10}
        kept = [at for at, label in enumerate(labels) if label in many]
        told = [labels[at] for at in kept]
        found = {what: besag.probe(x[kept], told, penalty=10.0) for what, x in (("model", vectors), ("shares", shares))}
        most = Counter(told).most_common(1)[0][1] / len(told)
        print(json.dumps({"label": name, "labels": len(many), "chains": len(kept), "most_frequent": most,
                          **{what: one.accuracy for what, one in found.items()}}))  # fmt: skip


if __name__ == "__main__":
    main()
