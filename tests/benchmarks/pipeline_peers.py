"""x."""


def compare_peers(corpus, folder): ...
