"""Variants of a protein: what a substitution of residues does, and what two of them do together."""
