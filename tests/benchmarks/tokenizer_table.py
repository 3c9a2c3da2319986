"""The table of docs/tokenizers.md: what loads each family of the zoo, and how it compares.

    python tests/benchmarks/tokenizer_table.py [--megabytes 4] [--write]

Needs the folder `shared` beside the checkout, and `tokenizers`, `tiktoken` and `sentencepiece`.
Per family: who encodes; whether all strings of the zoo, and the first 200 kB of English, code and
Chinese as documents of about 4 KB, give the ids of the family's own library; and the speed on
English, as a ratio to that library's in the same run, by CPU time on one thread. `--write` puts
the table between the marks in docs/tokenizers.md.
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import prepare_corpus

from bpe import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
ZOO = ROOT.parent / "shared" / "data" / "zoo"
GUIDE = ROOT / "docs" / "tokenizers.md"
MARKS = ("<!-- table of families -->\n", "<!-- end of the table -->\n")
EXPECTED = {"qwen3.6-tiktoken": "qwen3.5-3.6.tiktoken", "tekken": "tekken-o.tiktoken"}
COMPARED_BYTES = 200_000
SCHEMES = {"qwen3.6-tiktoken": "qwen3.5"}  # files that do not name theirs

Encode = Callable[[str], list[int]]


def unpack(family: str, folder: Path) -> Path:
    """The family's file, unpacked."""
    (source,) = (ZOO / "files" / family).iterdir()
    name = source.name.removesuffix(".xz")
    path = folder / family / name
    path.parent.mkdir(exist_ok=True)
    data = source.read_bytes()
    path.write_bytes(lzma.decompress(data) if source.suffix == ".xz" else data)
    return path


def reference(family: str, path: Path, scheme: str) -> tuple[str, Encode]:
    """The family's own library, and its encoding of one text; special tokens are text to it."""
    if path.suffix == ".model":
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        return "sentencepiece", model.encode
    if path.suffix == ".tiktoken" or family == "tekken":
        return "tiktoken", rank_encoder(path, scheme)
    import tokenizers

    if path.name == "vocab.txt":
        theirs: Any = tokenizers.BertWordPieceTokenizer(str(path))
    else:
        theirs = tokenizers.Tokenizer.from_file(str(path))
        theirs.encode_special_tokens = True
    return "tokenizers", lambda text: theirs.encode(text, add_special_tokens=False).ids


def rank_encoder(path: Path, scheme: str) -> Encode:
    """tiktoken's encoding by a rank file or by tekken.json."""
    import tiktoken

    first = 0
    if path.suffix == ".json":
        content = json.loads(path.read_bytes())
        first = content["config"]["default_num_special_tokens"]
        size = content["config"]["default_vocab_size"] - first
        pattern = content["config"]["pattern"]
        rows = content["vocab"][:size]
        ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in rows}
    else:
        from bpe import get_scheme

        steps = get_scheme(scheme).steps
        pattern = steps[0].pattern
        lines = (line.split() for line in path.read_bytes().splitlines())
        ranks = {base64.b64decode(row[0]): int(row[1]) for row in lines if len(row) == 2}
    encoding = tiktoken.Encoding("zoo", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: [first + token for token in encoding.encode_ordinary(text)]


def documents(path: Path, size: int) -> list[str]:
    """The first bytes of a corpus, in documents of about 4 KB."""
    text = path.read_bytes()[:size].decode(errors="ignore")
    return [text[start : start + 4096] for start in range(0, len(text), 4096)]


def seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(family: str, corpora: dict[str, Path], options: argparse.Namespace) -> str:
    """A row of the table."""
    path = unpack(family, options.folder)
    named = {"pretokenizer": SCHEMES[family]} if family in SCHEMES else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = Tokenizer.load(path, **named)
    library, encode = reference(family, path, ours.scheme.name)
    policy = "allow" if library == "tokenizers" else "text"
    lines = (ZOO / "expected" / f"{EXPECTED.get(family, family)}.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    wrong = sum(ours.encode(c["text"], special_text=policy).tolist() != c["ids"] for c in cases)
    for corpus in corpora.values():
        texts = documents(corpus, COMPARED_BYTES)
        found = ours.encode_batch(pa.array(texts)).to_pylist()
        wrong += sum(ids != encode(text) for ids, text in zip(found, texts, strict=True))
    texts = documents(corpora["en200"], options.megabytes << 20)
    ours.encode_batch(pa.array(texts[:10]))
    own = seconds(lambda: ours.encode_batch(pa.array(texts))) / len(texts)
    few = texts[: max(10, len(texts) // 8)]
    theirs = seconds(lambda: [encode(text) for text in few]) / len(few)
    engine = "native" if type(ours.model).__name__ == "TokenizerModel" else library
    exact = f"{library}, {len(cases)} strings and 3 corpora" if not wrong else f"{wrong} differ"
    row = f"| {family} | `{path.name}` | {engine} | {exact} | {theirs / own:.1f} × |"
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    parser.add_argument("--families", nargs="+")
    parser.add_argument("--write", action="store_true", help="put the table into the guide")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    corpora = {
        name: prepare_corpus(name, options.folder, options.megabytes << 20)
        for name in ("en200", "code50", "zh100")
    }
    families = options.families or sorted(each.name for each in (ZOO / "files").iterdir())
    head = (
        "| family | file | encoded by | equal to | speed to its library |\n|---|---|---|---|---|\n"
    )
    table = head + "".join(f"{measure(name, corpora, options)}\n" for name in families)
    if options.write:
        text = GUIDE.read_text(encoding="utf-8")
        before, _, rest = text.partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        GUIDE.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
