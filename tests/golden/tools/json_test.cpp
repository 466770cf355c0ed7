// The keys of every JSON answer, in order: programs read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/correctness/tools/command.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::ElementsAre;

std::vector<std::string> keys(const std::string& text) {
  const auto object = nlohmann::ordered_json::parse(text, nullptr, false);
  std::vector<std::string> result;
  if (object.is_object()) {
    for (const auto& [key, value] : object.items()) {
      result.push_back(key);
    }
  }
  return result;
}

TEST(JsonKeys, Run) {
  const Session session;
  put_inputs(session / "in", {32, 1, 128}, {32, 1, 128}, {32, 1, 128});
  const Result result = session.zyfa_jit({"run", "--inputs", session / "in", "--json"});
  EXPECT_THAT(keys(result.out),
              ElementsAre("inputs", "shape", "mask_from", "softmax_scale", "problem", "key", "row", "schedule",
                          "source", "layer", "llvm", "vgprs", "agprs", "lds_bytes", "instructions", "helpers",
                          "workspace_bytes", "compile_ms", "publish_ms", "rejected_entries", "device", "strict",
                          "launches", "launches_that_differ", "tile_paths", "host_seconds", "rms_percent", "max_abs",
                          "lse_max_abs", "nan_mismatches", "nonzero_in_empty_rows", "limits", "within_tolerance"))
      << result.err;
  EXPECT_THAT(keys(result.json()["compile_ms"].dump()),
              testing::UnorderedElementsAre("total", "lookup", "open", "build", "load"));
}

TEST(JsonKeys, PrewarmAndList) {
  const Session session;
  put_file(session / "s", "bf16,d=128,full\n");
  Result result = session.zyfa_jit({"prewarm", "--shapes", session / "s", "--json"});
  EXPECT_THAT(keys(result.out), ElementsAre("problems", "unpublished", "publish_ms")) << result.err;
  result = session.zyfa_jit({"list", "--json"});
  EXPECT_THAT(keys(result.out), ElementsAre("kernels")) << result.err;
  const auto list = nlohmann::ordered_json::parse(result.out);
  EXPECT_THAT(keys(list["kernels"][0].dump()),
              ElementsAre("key", "problem", "schedule", "symbol", "bytes", "generator", "llvm", "layer", "path"));
}

TEST(JsonKeys, DumpExplainVerify) {
  const Session session;
  Result result = session.zyfa_jit({"dump", "--problem", "bf16,d=128", "--json", "--schedule", "--registers",
                                    "--metadata", "--asm", "--isa", "--save", session / "k.hsaco"});
  EXPECT_THAT(keys(result.out), ElementsAre("key", "problem", "symbol", "object_bytes", "schedule", "registers",
                                            "metadata", "asm", "isa"))
      << result.err;
  result = session.zyfa_jit({"verify", session / "k.hsaco", "--json"});
  EXPECT_THAT(keys(result.out),
              ElementsAre("file", "target", "kernels", "instructions", "not_reached", "findings", "notes"))
      << result.err;
  result = session.zyfa_jit({"explain", "--problem", "bf16,d=128", "--json"});
  EXPECT_THAT(keys(result.out),
              ElementsAre("problem", "supported", "row", "schedule", "key", "key_fields", "cached", "path", "helpers"))
      << result.err;
  result = session.zyfa_jit({"explain", "--problem", "bf16,d=64", "--json"});
  EXPECT_THAT(keys(result.out), ElementsAre("problem", "supported", "reasons"));
}

TEST(JsonKeys, Profile) {
  const Session session;
  const Result result = session.zyfa_jit({"profile", "--problem", "bf16,d=128", "--tokens", "1024", "--json"});
  EXPECT_THAT(keys(result.out),
              ElementsAre("problem", "tokens", "key_tokens", "heads", "key_heads", "batch", "inputs", "key", "row",
                          "schedule", "predicted", "kernel", "parameters", "recorded", "longest", "cycles", "loop",
                          "units", "critical", "waves", "toggles_per_mfma", "sensitivity", "corners", "chip"))
      << result.err;
  const auto profile = nlohmann::ordered_json::parse(result.out);
  EXPECT_THAT(keys(profile["loop"].dump()),
              ElementsAre("head", "tail", "trips", "cycles_per_trip", "instructions_per_trip", "matrix_cycles_per_trip",
                          "waves_per_simd", "prologue_cycles", "epilogue_cycles", "keys_per_trip", "cycles_per_tile",
                          "useful_matrix_busy"));
  EXPECT_THAT(keys(profile["chip"].dump()),
              ElementsAre("workgroups", "resident", "resident_limit", "cycles", "busy", "tail", "imbalance",
                          "longest_workgroup_cycles", "requested_bytes", "unique_bytes", "unique_bytes_estimated",
                          "l2_cycles", "infinity_cache_seconds", "hbm_seconds", "bound", "clock_ghz", "clock_source",
                          "seconds", "flops", "flops_kind", "tflops"));
  EXPECT_THAT(keys(profile["chip"]["tflops"].dump()), ElementsAre("value", "low", "high"));
  EXPECT_THAT(keys(profile["recorded"][0].dump()), ElementsAre("workgroup", "instructions", "cycles"));
  EXPECT_THAT(keys(profile["waves"][0].dump()), ElementsAre("index", "simd", "start", "end", "instructions", "stalls"));
  EXPECT_THAT(keys(profile["sensitivity"][0].dump()),
              ElementsAre("parameter", "value", "low", "high", "open", "at_low", "at_high"));
  EXPECT_TRUE(profile["corners"].is_null());
  const Result corners = session.zyfa_jit(
      {"profile", "--problem", "bf16,d=128", "--tokens", "1024", "--corners", "--no-error-bars", "--json"});
  const auto all = nlohmann::ordered_json::parse(corners.out)["corners"];
  EXPECT_THAT(keys(all.dump()), ElementsAre("axes", "trips", "as_set", "corners"));
  EXPECT_THAT(keys(all["axes"][0].dump()), ElementsAre("parameter", "values"));
  EXPECT_THAT(keys(all["corners"][0].dump()),
              ElementsAre("values", "cycles_per_trip", "cycles_per_tile", "matrix_busy", "useful_matrix_busy"));
  const Result list = session.zyfa_jit({"profile", "--parameters", "--json"});
  EXPECT_THAT(keys(nlohmann::ordered_json::parse(list.out)["parameters"][0].dump()),
              ElementsAre("name", "value", "low", "high", "open", "unit", "source", "meaning"));
}

TEST(JsonKeys, Tune) {
  const Session session;
  const Result result =
      session.zyfa_jit({"tune", "--problem", "bf16,d=128", "--tokens", "64", "--trials", "2", "--json"});
  EXPECT_THAT(keys(result.out), ElementsAre("problem", "tokens", "seed", "parameters", "also", "trials", "from_log",
                                            "interrupted", "losses", "start", "best"))
      << result.err;
  EXPECT_THAT(keys(nlohmann::ordered_json::parse(result.out)["best"].dump()),
              ElementsAre("placement", "cycles", "also", "toggles", "why"));
}

TEST(JsonKeys, Errors) {
  const Session session;
  const Result result = session.zyfa_jit({"verify", session / "gone", "--json"});
  EXPECT_THAT(keys(result.out), ElementsAre("error"));
  EXPECT_THAT(keys(nlohmann::ordered_json::parse(result.out)["error"].dump()),
              ElementsAre("code", "message", "details"));
}

}  // namespace
}  // namespace zyfa::tools
