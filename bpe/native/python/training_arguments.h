// What the bindings of training and of rounds take alike.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/training.h"

namespace py = pybind11;

namespace beam_bpe {

// Calls the user's function, and lets Ctrl-C end the work.
TrainingProgress progress_of(const py::object& callback);

// Throws SettingsError for limits below 1 and an unknown tie order.
TrainingRules rules_of(int64_t max_merges, const std::string& tie_order, int64_t min_frequency,
                       std::optional<int64_t> max_token_bytes,
                       const std::vector<py::bytes>& forbidden, std::optional<int64_t> max_words,
                       const std::vector<py::bytes>& forbidden_parts, size_t spare_seams);

}  // namespace beam_bpe
