"""Files of other kinds than byte-level BPE, as the content that a library reads."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

from bpe.engines.library import import_library
from bpe.engines.library_model import LibraryModel
from bpe.errors import BackendError, ModelFileError
from bpe.formats.file_access import decode_text, parse_json_object, read_file, read_text

__all__ = ["read_by_library", "read_sentencepiece", "read_wordpiece_vocab"]

PathLike = str | os.PathLike[str]

_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def read_by_library(path: PathLike, refusal: ModelFileError) -> LibraryModel:
    """Model of a tokenizer.json that `refusal` says the core cannot take.

    Raises the refusal, with more words, if the library cannot take it either or is not there.
    """
    data = read_file(path)
    model = parse_json_object(decode_text(data, path), path).get("model")
    if not isinstance(model, dict) or model.get("dropout"):
        # Merges that are dropped by chance would give other ids each time.
        raise refusal
    return _opened("tokenizers", data, path, refusal)


def read_sentencepiece(path: PathLike, refusal: ModelFileError) -> LibraryModel:
    """Model of a SentencePiece file; errors as of `read_by_library`."""
    return _opened("sentencepiece", read_file(path), path, refusal)


def read_wordpiece_vocab(path: PathLike, refusal: ModelFileError) -> LibraryModel:
    """Model of BERT's vocab.txt, with the tokenizer_config.json beside it if there is one.

    Without one, a vocabulary without ASCII capitals is one of lower-cased texts. Errors as of
    `read_by_library`.
    """
    lines = read_text(path).removesuffix("\n").split("\n")
    vocab = {line.removesuffix("\r"): index for index, line in enumerate(lines)}
    missing = [text for text in _SPECIALS[:2] if text not in vocab]
    if missing or len(vocab) < len(lines):
        what = f"it lacks {missing[0]}" if missing else "a line is there twice"
        raise ModelFileError(f"{path} is no WordPiece vocabulary: {what}; get the file again")
    lower = not any("A" <= letter <= "Z" for text in vocab if text[:1] != "[" for letter in text)
    config_path = Path(path).with_name("tokenizer_config.json")
    config = parse_json_object(read_text(config_path), config_path) if config_path.is_file() else {}
    content = json.dumps(_bert_document(vocab, config, lower=lower), ensure_ascii=False)
    return _opened("tokenizers", content.encode(), path, refusal)


def _bert_document(vocab: dict[str, int], config: dict[str, Any], *, lower: bool) -> dict[str, Any]:
    """tokenizer.json of BERT, as `transformers` makes it of these files."""
    strip_accents = config.get("strip_accents")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": vocab[text], "content": text, **flags, "special": True}
            for text in _SPECIALS
            if text in vocab
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": config.get("tokenize_chinese_chars", True) is not False,
            "strip_accents": strip_accents if isinstance(strip_accents, bool) else None,
            "lowercase": config.get("do_lower_case", lower) is not False,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }


def _opened(engine: str, content: bytes, path: PathLike, refusal: ModelFileError) -> LibraryModel:
    try:
        import_library(engine)
        model = LibraryModel(engine, content)
    except BackendError as error:
        raise ModelFileError(f"{refusal}; {error}") from error
    except ModelFileError as error:
        raise ModelFileError(f"{refusal}; {error}") from error
    except Exception as error:
        raise ModelFileError(f"{refusal}; {engine} found: {str(error)[:200]}") from error
    warnings.warn(
        f"{path}: ids are made by {engine} {model.library.version} ({model.kind}), not by the "
        "native core",
        UserWarning,
        stacklevel=3,
    )
    return model
