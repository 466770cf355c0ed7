#include "tests/correctness/peers/peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "runtime/io/npy.h"
#include "tests/reference/compare.h"

namespace zyfa::peers {
namespace {

using reference::Mask;
using tools::testing_support::Session;

constexpr Formats kBf16{Format::kBf16, Format::kBf16}, kFp8{Format::kE4m3, Format::kE4m3};

// A kernel of v4: head dim 128, not causal, a key head for every query head, no LSE.
constexpr Peer v4(const char* name, const char* file, const char* symbol, Formats formats,
                  std::int64_t key_multiple = 1, std::int64_t least_keys = 1) {
  // With Q and K of 6 and 4 bits P comes from an integer exp2 (v_cvt_pk_u8_f32), whose error shows where rows average
  // over thousands of keys.
  const double trained = formats.qk == Format::kMxE2m3 || formats.qk == Format::kMxE2m1 ? 16 : 0;
  return {name, file, symbol, formats, Mask::kFull, 128,          128,        512,
          256,  6,    0,      false,   false,       key_multiple, least_keys, trained};
}

// The kernels for head dim 256 take exp2 of tiles far below the row's maximum by an integer approximation, which shows
// in the LSE.
constexpr Peer kPeers[] = {
    {"v3_bf16_causal", "fmha_v3_fwd/fwd_hd128_bf16_causal.co", "_ZN5aiter26fmha_fwd_hd128_bf16_causalE", kBf16,
     Mask::kCausal, 128, 128, 512, 256, 0.3},
    {"v3_fp8", "fmha_v3_fwd/fwd_hd128_fp8.co", "_ZN5aiter24fmha_fwd_hd128_fp8_gfx950E", kFp8, Mask::kFull, 128, 128,
     512, 256, 3},
    {"v3_fp8_causal", "fmha_v3_fwd/fwd_hd128_fp8_causal.co", "_ZN5aiter31fmha_fwd_hd128_fp8_causal_gfx950E", kFp8,
     Mask::kCausal, 128, 128, 512, 256, 3},
    v4("v4_fp8", "fmha_v4_fwd/fwd_hd128_fp8.co", "_ZN5aiter24fmha_fwd_hd128_fp8_gfx950E", kFp8),
    {"v3_bf16", "fmha_v3_fwd/fwd_hd128_bf16.co", "_ZN5aiter19fmha_fwd_hd128_bf16E", kBf16, Mask::kFull, 128, 128, 512,
     256, 0.3},
    {"v3_bf16_192", "fmha_v3_fwd/fwd_hd192_hd128_bf16.co", "_ZN5aiter25fmha_fwd_hd192_hd128_bf16E", kBf16, Mask::kFull,
     192, 128, 256, 128, 0.3},
    {"v3_bf16_192_causal", "fmha_v3_fwd/fwd_hd192_hd128_bf16_causal.co", "_ZN5aiter32fmha_fwd_hd192_hd128_bf16_causalE",
     kBf16, Mask::kCausal, 192, 128, 256, 128, 0.3},
    {"v3_fp8_256", "fmha_v3_fwd/fwd_hd256_fp8.co", "_ZN5aiter25fmha_fwd_hd256_fp8_gfx950E", kFp8, Mask::kFull, 256, 256,
     512, 256, 3, 1e-3},
    {"v3_fp8_256_causal", "fmha_v3_fwd/fwd_hd256_fp8_causal.co", "_ZN5aiter32fmha_fwd_hd256_fp8_causal_gfx950E", kFp8,
     Mask::kCausal, 256, 256, 512, 256, 3, 1e-3},
    v4("v4_i8fp8", "fmha_v4_fwd/fwd_hd128_i8fp8.co", "_ZN5aiter28fmha_fwd_hd128_i8fp8_gfx950E",
       {Format::kI8, Format::kE4m3}),
    v4("v4_mxfp8", "fmha_v4_fwd/fwd_hd128_mxfp8.co", "_ZN5aiter28fmha_fwd_hd128_mxfp8_gfx950E",
       {Format::kMxE4m3, Format::kE4m3}),
    v4("v4_f8f6", "fmha_v4_fwd/fwd_hd128_f8f6.co", "_ZN5aiter28fmha_fwd_hd128_f8f6_gfx950E",
       {Format::kE4m3, Format::kMxE2m3}, 128),
    v4("v4_mxfp6", "fmha_v4_fwd/fwd_hd128_mxfp6.co", "_ZN5aiter28fmha_fwd_hd128_mxfp6_gfx950E",
       {Format::kMxE2m3, Format::kE4m3Channel}, 1, 128),
    v4("v4_f6f4", "fmha_v4_fwd/fwd_hd128_f6f4.co", "_ZN5aiter28fmha_fwd_hd128_f6f4_gfx950E",
       {Format::kMxE2m3, Format::kMxE2m1}, 128),
    v4("v4_mxfp4", "fmha_v4_fwd/fwd_hd128_mxfp4.co", "_ZN5aiter28fmha_fwd_hd128_mxfp4_gfx950E",
       {Format::kMxE2m1, Format::kE4m3Channel}, 1, 128),
    v4("v4_f4f4", "fmha_v4_fwd/fwd_hd128_f4f4.co", "_ZN5aiter28fmha_fwd_hd128_f4f4_gfx950E",
       {Format::kMxE2m1, Format::kMxE2m1}, 128),
};

constexpr std::int64_t kKeysReadBehind = 256;

void put_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes, std::int64_t behind = 0) {
  std::vector<std::byte> all(bytes.size());
  std::memcpy(all.data(), bytes.data(), bytes.size());
  all.resize(all.size() + static_cast<std::size_t>(behind), std::byte{0x47});
  const std::int64_t shape[] = {static_cast<std::int64_t>(all.size())};
  ASSERT_TRUE(io::write_npy(path, io::ElementType::kU8, shape, all)) << path;
}

template <typename T>
std::vector<T> get_array(const std::filesystem::path& path) {
  const Expected<io::Npy> array = io::read_npy(path);
  EXPECT_TRUE(array) << path;
  if (!array) {
    return {};
  }
  std::vector<T> values(array->data.size() / sizeof(T));
  std::memcpy(values.data(), array->data.data(), values.size() * sizeof(T));
  return values;
}

std::int64_t tiles(std::int64_t length, std::int64_t tile) { return (length + tile - 1) / tile; }

// Arguments stand in slots of 16 bytes; strides are in bytes.
class Arguments {
 public:
  void buffer(unsigned offset, const std::string& file) { list_.push_back({{"buffer", file}, {"offset", offset}}); }
  void output(unsigned offset, std::int64_t bytes, const std::string& file, const char* dtype) {
    // Starts as NaN, so that what the kernel leaves out shows.
    list_.push_back({{"bytes", bytes},
                     {"fill", 255},
                     {"write", file},
                     {"dtype", dtype},
                     {"shape", {bytes / (dtype == std::string("float32") ? 4 : 2)}},
                     {"offset", offset}});
  }
  void scalar(unsigned offset, std::int64_t value) { list_.push_back({{"u32", value}, {"offset", offset}}); }
  void single(unsigned offset, float value) { list_.push_back({{"f32", value}, {"offset", offset}}); }
  void null(unsigned offset) { list_.push_back({{"null", true}, {"offset", offset}}); }
  // Strides of token, head and batch.
  void strides(unsigned token, unsigned head, unsigned batch, const Array& array) {
    scalar(token, array.token_stride);
    scalar(head, array.head_stride);
    scalar(batch, array.batch_stride);
  }
  [[nodiscard]] const nlohmann::json& json() const { return list_; }

 private:
  nlohmann::json list_ = nlohmann::json::array();
};

nlohmann::json job_of(const Peer& peer, const Inputs& in, const Launch& launch) {
  const Array& q = in.q;
  const std::int64_t rows = q.batch * q.heads * q.tokens;
  Arguments args;
  args.output(0x000, rows * peer.dim_v * 2, "o.npy", "bfloat16");
  args.buffer(0x010, "q.npy");
  args.buffer(0x020, "k.npy");
  args.buffer(0x030, "v.npy");
  if (launch.lse == Lse::kOn) {
    args.output(0x040, rows * 4, "lse.npy", "float32");
  } else {
    args.null(0x040);
  }
  args.single(0x050, in.softmax_scale);
  args.scalar(0x060, q.tokens);
  args.strides(0x070, 0x090, 0x0a0, q);
  args.scalar(0x080, peer.query_tile * q.token_stride);
  args.scalar(0x0b0, q.heads / in.k.heads);
  args.strides(0x0c0, 0x0d0, 0x0e0, in.k);
  args.scalar(0x0f0, 0);
  args.scalar(0x100, launch.lse == Lse::kOn ? 1 : 0);
  args.scalar(0x110, in.k.tokens);
  args.scalar(0x120, peer.dim_qk);
  args.scalar(0x130, peer.dim_v);
  args.scalar(0x140, q.heads);
  args.strides(0x150, 0x160, 0x170, in.v);
  args.scalar(0x180, q.heads * peer.dim_v * 2);
  args.scalar(0x190, peer.dim_v * 2);
  args.scalar(0x1a0, q.tokens * q.heads * peer.dim_v * 2);
  args.scalar(0x1d0, q.tokens * 4);
  unsigned slot = 0;
  for (const auto& [name, array] : {std::pair("q", &in.q), {"k", &in.k}, {"v", &in.v}}) {
    if (!array->descales.empty()) {
      args.buffer(0x200 + 0x10 * slot, std::string(name) + "_descale.npy");
    }
    args.scalar(0x230 + 0x20 * slot, array->descale_batch_stride);
    args.scalar(0x240 + 0x20 * slot, array->descale_head_stride);
    ++slot;
  }
  std::int64_t groups = tiles(q.tokens, peer.query_tile);
  if (peer.mask == Mask::kCausal) {
    groups = tiles(groups, 2);  // a workgroup takes tile x, then tile n - 1 - x
  }
  return {{"object", std::string(ZYFA_PEER_KERNELS "/") + peer.file},
          {"kernel", peer.symbol},
          {"grid", {groups, q.heads, q.batch}},
          {"block", {peer.workgroup, 1, 1}},
          {"args", args.json()}};
}

// What the kernel wrote against fp64.
void judge(Outcome& outcome, const Session& session, const reference::AttentionResult& expected, const Launch& launch) {
  const std::vector<std::uint16_t> o = get_array<std::uint16_t>(session / "o.npy");
  std::vector<float> lse;
  if (launch.lse == Lse::kOn) {
    lse = get_array<float>(session / "lse.npy");
  }
  const auto view = reference::dense_view(o.data(), expected.batch, expected.tokens, expected.heads, expected.dim);
  const Expected<reference::ErrorFigures> figures = reference::compare(expected, view, lse);
  ASSERT_TRUE(figures);
  outcome.rms_percent = figures->relative_rms_percent;
  outcome.wrong_nan = figures->mismatched_nan;
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const double want = expected.lse[i];
    if (lse[i] != want) {  // equal infinities of rows that see no key
      outcome.lse_error = std::max(outcome.lse_error, std::abs(lse[i] - want) / std::max(1.0, std::abs(want)));
    }
  }
}

}  // namespace

std::vector<std::string> peer_names() {
  std::vector<std::string> names;
  for (const Peer& p : kPeers) {
    names.emplace_back(p.name);
  }
  return names;
}

const Peer& peer(const std::string& name) {
  const auto* found = std::find_if(std::begin(kPeers), std::end(kPeers), [&](const Peer& p) { return name == p.name; });
  if (found == std::end(kPeers)) {
    ADD_FAILURE() << "no peer " << name;
    return kPeers[0];
  }
  return *found;
}

reference::AttentionResult expected(const Peer& peer, const Inputs& inputs) {
  Expected<reference::AttentionResult> result = reference::attention({.q = inputs.q.view(),
                                                                      .k = inputs.k.view(),
                                                                      .v = inputs.v.view(),
                                                                      .mask = peer.mask,
                                                                      .softmax_scale = inputs.score_scale});
  EXPECT_TRUE(result);
  if (!result) {
    return {};
  }
  for (double& value : result->o) {
    value *= inputs.v.descale;
  }
  return *std::move(result);
}

Outcome simulate(const Peer& peer, const Inputs& inputs, const reference::AttentionResult& expected,
                 const Launch& launch) {
  const Session session;
  const bool read_behind = peer.formats.qk == Format::kBf16 && launch.behind == Behind::kFinite;
  for (const auto& [name, array] : {std::pair("q", &inputs.q), {"k", &inputs.k}, {"v", &inputs.v}}) {
    const std::int64_t behind = read_behind && array != &inputs.q ? kKeysReadBehind * array->token_stride : 0;
    put_bytes(session / (std::string(name) + ".npy"), array->bytes, behind);
    put_bytes(session / (std::string(name) + "_descale.npy"), array->descales);
  }
  tools::testing_support::put_file(session / "job.json", job_of(peer, inputs, launch).dump(1));
  std::vector<std::string> arguments{"simulate", session / "job.json", "--json", "--threads", "0"};
  arguments.insert(arguments.end(), launch.flags.begin(), launch.flags.end());
  Outcome outcome;
  outcome.run = session.zyfa_jit(arguments);
  if (outcome.ran()) {
    outcome.seconds = outcome.run.json().value("host_seconds", 0.0);
    judge(outcome, session, expected, launch);
  }
  return outcome;
}

}  // namespace zyfa::peers
