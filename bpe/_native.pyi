"""The native core as Python sees it (python_module.cc); `native_backend` adapts it.

Columns go in as anything with Arrow's `__arrow_c_array__`, without nulls: text as binary, string,
large_binary or large_string, numbers as int64. They come out as `Column`, for `pyarrow.array`.
Nothing is copied on either way, and Python's lock is free while the core works. Errors are those
of `bpe.errors`; an argument of another Python type raises `TypeError`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypedDict

import numpy as np
import numpy.typing as npt

INTERFACE: int
"""Changes with the names and arguments below: what was compiled from other sources is refused."""

page_pool: object
"""Capsule of the page pool's C functions, for other extensions: a process has one pool."""

def isa() -> str:
    """Name of the instruction set in force: scalar, avx2 or avx512; see BPE_ISA."""

def available_isas() -> list[str]:
    """Names of the instruction sets that this build and this processor have."""

def give_back_memory(keep: int) -> None:
    """Give the system the pages kept of released buffers, and what is free in glibc's heaps.

    keep: bytes of pages that may stay.
    """

class PooledBytes:
    """Memory (a writable buffer of so many bytes, of any content) from the pages that are kept."""

    def __init__(self, size: int) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview:
        """The memory itself."""

def map_large_blocks() -> bool:
    """Have glibc map blocks of 8 MiB and more one by one; False if the C library is another."""

def normalize(data: bytes, form: str, is_latest: bool) -> bytes:
    """Normal form of a text: NFC, NFD, NFKC, NFKD or Lowercase.

    is_latest: by Unicode 16.0, else by 9.0. Raises `SettingsError` for another form.
    """

def normalize_documents(texts: ArrowColumn, form: str, is_latest: bool) -> Column | None:
    """The same for each text (large_binary); None if no text changes."""

def scan_ends(
    data: bytes, scheme: str | PatternScan, isa: str, *, batch: int
) -> npt.NDArray[np.uint64]:
    """Ends of a document's pre-tokens, found `batch` at a time with one instruction set.

    For tests. Raises `SettingsError` for an instruction set that is missing here.
    """

class PatternScan:
    """The scan of a scheme that is a pattern: an automaton over atoms, classes of characters.

    starts: first code point of each range, ascending from 0. atoms: atom of each range; 0 is that
    of bytes that are no valid UTF-8. next_states, ends: rows of an `Automaton`. certain_cuts: rows
    of the pairs of atoms between which a pre-token ends, whatever stands elsewhere.
    Raises `SettingsError` for tables that do not fit each other.
    """

    def __init__(
        self,
        *,
        starts: list[int],
        atoms: list[int],
        next_states: list[list[int]],
        ends: list[list[bool]],
        certain_cuts: list[list[bool]],
    ) -> None: ...

class ArrowColumn(Protocol):
    """An Arrow array of any library."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Capsules of the C data interface: schema and array."""

class Column:
    """A result; hands itself over once."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Capsules of the C data interface; `ValueError` the second time."""

class RuleArguments(TypedDict):
    """The fields of `bpe.backends.values.MergeRules`."""

    max_merges: int
    tie_order: str
    min_frequency: int
    max_token_bytes: int | None
    forbidden: list[bytes]
    max_words: int | None
    forbidden_parts: list[bytes]

def train_words(
    words: ArrowColumn,
    counts: ArrowColumn,
    first_positions: ArrowColumn | None,
    *,
    max_merges: int,
    tie_order: str,
    min_frequency: int,
    max_token_bytes: int | None,
    forbidden: list[bytes],
    progress: Callable[[int, int], None] | None,
    spare_seams: int = ...,
    max_words: int | None = ...,
    forbidden_parts: list[bytes] = ...,
) -> tuple[list[tuple[bytes, bytes]], list[int], str]:
    """Learn merges from distinct words and their counts: (merges, counts, stop reason).

    progress: called about ten times a second with (merges made, merges asked for), and at the
        end; what it raises ends the training, as Ctrl-C does.
    spare_seams: bounds memory, 4 bytes each; the merges don't depend on it.
    Raises `CountTableError` for a count below 1 and for a pair count above 2^63 - 1, `InputError`
    for more than 2^32 - 66 bytes and words.
    """

def train_raw(
    documents: ArrowColumn,
    *,
    max_merges: int,
    tie_order: str,
    min_frequency: int,
    max_token_bytes: int | None,
    forbidden: list[bytes],
    progress: Callable[[int, int], None] | None,
    spare_seams: int = ...,
    max_words: int | None = ...,
    forbidden_parts: list[bytes] = ...,
) -> tuple[list[tuple[bytes, bytes]], list[int], str]:
    """Learn merges from whole documents, as `train_words` does from words."""

class WordCounter:
    """Counts pre-tokens of many documents; a table for each thread, bounded by its caller.

    scheme: gpt2, cl100k, o200k, llama3, qwen2, whitespace or superbpe, or the scan of a pattern;
    None if the caller brings words.
    """

    def __init__(self, scheme: str | PatternScan | None, *, threads: int) -> None: ...
    def add_documents(self, texts: ArrowColumn) -> None:
        """Count the pre-tokens of each element, a document of its own."""

    def add_words(self, words: ArrowColumn) -> None:
        """Count each element, a word as it is; empty ones are left out."""

    @property
    def memory_bytes(self) -> int:
        """Memory of all tables now; to stay within bounds, drain when it grows too large."""

    def drain(self) -> tuple[Column, Column, Column]:
        """All words so far, and empty the tables.

        Returns large_binary words, ascending by bytes; int64 counts; int64 first positions, in
        bytes from the start of everything ever added.
        """

class TokenTally:
    """Counts tokens and the documents that hold them, by group of documents; measures texts.

    lengths: int64, bytes of every id. spells: whether the ids of a text spell it byte for byte.
    """

    def __init__(self, lengths: ArrowColumn, *, spells: bool) -> None: ...
    def add(
        self,
        texts: ArrowColumn,
        ids: ArrowColumn,
        offsets: ArrowColumn,
        groups: ArrowColumn,
        begins: ArrowColumn,
    ) -> None:
        """Add documents, or parts of them: ids[offsets[i]:offsets[i + 1]] are those of texts[i].

        ids: uint16 or uint32; the others but texts are int64. groups: of each row. begins: 0 where
        a row goes on with the document of the row before it, in this call or an earlier one.
        Raises `InputError` for an id without a length, and for columns of different lengths.
        """

    @property
    def memory_bytes(self) -> int:
        """Memory of the counts of all groups."""

    def current_ids(self) -> Column:
        """The ids of the document that was added last, uint32, ascending."""

    def drain_counts(self) -> tuple[Column, Column, Column, Column]:
        """Group, id (uint32), count and documents, ascending by group and id; empties them."""

    def drain_measures(self) -> tuple[Column, ...]:
        """Group, and a column for each of `bpe.insight.tally.MEASURES`; empties them."""

def count_state_pairs(
    ids: ArrowColumn,
    offsets: ArrowColumn,
    weights: ArrowColumn | None,
    tokens: ArrowColumn,
    *,
    max_token_bytes: int | None,
    max_words: int | None,
    forbidden_parts: list[bytes],
) -> tuple[Column, Column, Column]:
    """Count all pairs of neighbours within lists of uint16 or uint32 ids, overlaps included.

    offsets: int64, one more than lists: list i is ids[offsets[i]:offsets[i + 1]]. weights: int64,
    one for each list; None: 1 each. tokens: binary, the bytes of every id.
    Returns uint32 left ids, uint32 right ids, int64 counts, ascending by (left, right), of the
    pairs that the limits allow. Raises `InputError` for an id without token, `CountTableError`
    for a weight below 1 and a count above 2^63 - 1.
    """

def cut_segments(
    ids: ArrowColumn,
    offsets: ArrowColumn,
    weights: ArrowColumn | None,
    heavy_left: ArrowColumn,
    heavy_right: ArrowColumn,
    *,
    sizes: list[int],
    cap_bytes: int,
    open_left: bool,
    open_right: bool,
) -> tuple[int, Column, Column, bytes, bytes, int, int, bool]:
    """Cut lists between ids that are no heavy pair: the fields of `values.CutSegments`.

    ids, offsets, weights: as for `count_state_pairs`. sizes: descending.
    """

def apply_merges(
    ids: ArrowColumn,
    offsets: ArrowColumn,
    left: ArrowColumn,
    right: ArrowColumn,
    *,
    first_id: int,
    wide: bool,
) -> Column:
    """Merge (left[i], right[i]) into first_id + i, one i after another: large_list of ids.

    wide: give uint32, else uint16. Raises `InputError` for merges whose parts are not made
    before, and for ids from first_id on.
    """

def simulate_merges(
    segments: ArrowColumn,
    weights: ArrowColumn,
    tokens: ArrowColumn,
    stop: tuple[int, int, int] | None,
    *,
    max_merges: int,
    tie_order: str,
    min_frequency: int,
    max_token_bytes: int | None,
    forbidden: list[bytes],
    max_words: int | None,
    forbidden_parts: list[bytes],
    spare_seams: int = ...,
) -> tuple[Column, Column, Column]:
    """Learn merges from run-coded segments of ids: left ids, right ids, counts.

    stop: (count, left id, right id) that a pick must be better than. spare_seams: as for
    `train_words`. Raises `InputError` for damaged codes and more than 2^32 - 66 tokens and
    segments, `CountTableError` for a weight below 1 and a pair count above 2^63 - 1.
    """

def train_segments(
    segments: ArrowColumn,
    weights: ArrowColumn,
    tokens: ArrowColumn,
    *,
    max_merges: int,
    tie_order: str,
    min_frequency: int,
    max_token_bytes: int | None,
    forbidden: list[bytes],
    progress: Callable[[int, int], None] | None,
    max_words: int | None,
    forbidden_parts: list[bytes],
    spare_seams: int = ...,
) -> tuple[list[tuple[bytes, bytes]], list[int], str]:
    """Learn merges from run-coded segments of ids, in the order of the text.

    Returns the fields of `values.MergeList`; errors as of `simulate_merges`.
    """

def train_wordpiece(
    words: ArrowColumn,
    counts: ArrowColumn,
    first_positions: ArrowColumn | None,
    *,
    max_tokens: int,
    max_merges: int,
    min_frequency: int,
    tie_order: str,
    reserved: Sequence[str],
    forbidden: Sequence[str],
    max_word_chars: int,
    limit_alphabet: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[str], list[tuple[str, str, int, int, int]], str, int, int]:
    """Learn the pieces of WordPiece: the fields of `recipe_values.WordPieceList`.

    limit_alphabet: 0 for none. Raises `CountTableError` as `train_words` does, and if all
    characters together occur more than 2^63 - 1 times; `SettingsError` for a reserved token that
    is a character.
    """

def recover_merges(tokens: ArrowColumn) -> tuple[Column, Column, Column, Column]:
    """Find the merges that tokens, by ascending rank, stand for.

    Returns uint32 positions of tokens: of the left parts, of the right ones, of what they make
    (ascending), and of the tokens of two bytes and more that no merge makes. Raises
    `VocabularyError` where a merge needs a byte that is no token.
    """

class Encoder:
    """Text to ids for one model; safe to use from several threads at once.

    tokens: id to bytes; every single byte is there. merges: (left id, right id, new id), index =
    rank. scheme: as for `WordCounter`; None takes a whole document as one pre-token, or leaves
    the splitting to the caller. cache_bytes: bound of what each thread remembers. added: text, id,
    special, normalized, lstrip, rstrip and single_word of each added token.
    Raises `VocabularyError` for a model that contradicts itself.
    """

    def __init__(
        self,
        *,
        tokens: dict[int, bytes],
        merges: list[tuple[int, int, int]],
        whole_piece: bool,
        scheme: str | PatternScan | None,
        cache_bytes: int,
        added: list[tuple[bytes, int, bool, bool, bool, bool, bool]],
    ) -> None: ...
    @property
    def wide_ids(self) -> bool:
        """Whether ids in columns are uint32; else uint16."""

    def encode(self, data: bytes, find: int) -> npt.NDArray[np.uint32]:
        """Ids of one document; find: bits of `bpe.encoding.added_tokens.Find`."""

    def encode_documents(self, texts: ArrowColumn, *, threads: int, find: int) -> Column:
        """Ids of each document: large_list of uint16 or uint32."""

    def cut_documents(self, texts: ArrowColumn, *, find: int) -> tuple[Column, ...]:
        """Segments of documents, all int64: the first one of each and the end, starts, ends, ids.

        Starts and ends are bytes from the document's start; id -1 is ordinary text.
        """

    def encode_split_documents(
        self, texts: ArrowColumn, pretoken_ends: ArrowColumn, first_pretokens: ArrowColumn
    ) -> Column:
        """The same for documents whose pre-tokens the caller has found.

        pretoken_ends: int64, ends of all pre-tokens, in bytes from the start of their document.
        first_pretokens: int64, one more than documents: where the ends of each document start.
        Raises `InputError` where the ends do not cover a document exactly.
        """

class AddedTokens:
    """Special tokens among added ones, in documents; safe to use from several threads at once.

    added: as for `Encoder`.
    """

    def __init__(self, added: list[tuple[bytes, int, bool, bool, bool, bool, bool]]) -> None: ...
    def count_specials(self, texts: ArrowColumn, *, find: int) -> Column:
        """How often each added token is found, int64, in their order; 0 for one not special."""

    def rows_with_specials(self, texts: ArrowColumn) -> Column:
        """Documents in which the text of a special token occurs, int64, ascending."""

class Decoder:
    """Ids to bytes; safe to use from several threads at once.

    tokens: id to bytes. ids are uint16, uint32, uint64, int32 or int64; `InputError` names the
    place of the first without token.
    """

    def __init__(self, tokens: dict[int, bytes]) -> None: ...
    def decode(self, ids: ArrowColumn) -> bytes:
        """Bytes of ids."""

    def decode_lists(self, ids: ArrowColumn, offsets: ArrowColumn, *, threads: int) -> Column:
        """Bytes of each list, large_binary: list i is ids[offsets[i]:offsets[i + 1]].

        offsets: int64, one more than lists.
        """
