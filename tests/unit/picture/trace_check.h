// Checks a trace against the Trace Event Format, as far as trace_json.h promises: every field, tracks with names,
// nesting and order. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zyfa::sim_test {

// Sentences, one a fault; empty: none.
std::vector<std::string> trace_faults(const nlohmann::json& trace);

}  // namespace zyfa::sim_test
