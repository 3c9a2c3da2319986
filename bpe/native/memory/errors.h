// The errors that the core raises on purpose. The binding turns each into the Python class of the
// same name in bpe/errors.py; standard exceptions pass as Python's own.
#pragma once

#include <stdexcept>
#include <string>

namespace beam_bpe {

// Something that the caller handed over cannot be used.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An option has a value that cannot be honoured.
class SettingsError : public InputError {
 public:
  using InputError::InputError;
};

// Merges, ids or special tokens that contradict each other.
class VocabularyError : public InputError {
 public:
  using InputError::InputError;
};

// A table of pre-token counts holds what no counting can have made.
class CountTableError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace beam_bpe
