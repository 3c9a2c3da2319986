"""Recipes of training besides byte-level BPE: each makes another kind of vocabulary of counts.

`registry` names them, with what each takes. A module of the recipe's name trains by it.
"""
