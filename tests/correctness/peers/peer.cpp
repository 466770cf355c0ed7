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

// The kernels for head dim 256 take exp2 of tiles far below the row's maximum by an integer approximation, which shows
// in the LSE.
constexpr Peer kPeers[] = {
    {"v3_bf16_causal", "fmha_v3_fwd/fwd_hd128_bf16_causal.co", "_ZN5aiter26fmha_fwd_hd128_bf16_causalE", Format::kBf16,
     Mask::kCausal, 128, 128, 512, 256, 0.3},
    {"v3_fp8", "fmha_v3_fwd/fwd_hd128_fp8.co", "_ZN5aiter24fmha_fwd_hd128_fp8_gfx950E", Format::kE4m3, Mask::kFull, 128,
     128, 512, 256, 3},
    {"v3_fp8_causal", "fmha_v3_fwd/fwd_hd128_fp8_causal.co", "_ZN5aiter31fmha_fwd_hd128_fp8_causal_gfx950E",
     Format::kE4m3, Mask::kCausal, 128, 128, 512, 256, 3},
    {"v4_fp8", "fmha_v4_fwd/fwd_hd128_fp8.co", "_ZN5aiter24fmha_fwd_hd128_fp8_gfx950E", Format::kE4m3, Mask::kFull, 128,
     128, 512, 256, 6, 0, false, false},
    {"v3_bf16", "fmha_v3_fwd/fwd_hd128_bf16.co", "_ZN5aiter19fmha_fwd_hd128_bf16E", Format::kBf16, Mask::kFull, 128,
     128, 512, 256, 0.3},
    {"v3_bf16_192", "fmha_v3_fwd/fwd_hd192_hd128_bf16.co", "_ZN5aiter25fmha_fwd_hd192_hd128_bf16E", Format::kBf16,
     Mask::kFull, 192, 128, 256, 128, 0.3},
    {"v3_bf16_192_causal", "fmha_v3_fwd/fwd_hd192_hd128_bf16_causal.co", "_ZN5aiter32fmha_fwd_hd192_hd128_bf16_causalE",
     Format::kBf16, Mask::kCausal, 192, 128, 256, 128, 0.3},
    {"v3_fp8_256", "fmha_v3_fwd/fwd_hd256_fp8.co", "_ZN5aiter25fmha_fwd_hd256_fp8_gfx950E", Format::kE4m3, Mask::kFull,
     256, 256, 512, 256, 3, 1e-3},
    {"v3_fp8_256_causal", "fmha_v3_fwd/fwd_hd256_fp8_causal.co", "_ZN5aiter32fmha_fwd_hd256_fp8_causal_gfx950E",
     Format::kE4m3, Mask::kCausal, 256, 256, 512, 256, 3, 1e-3},
};

constexpr std::int64_t kKeysReadBehind = 256;

std::span<const std::byte> bytes_of(const Array& array) {
  return array.e4m3.empty() ? std::as_bytes(std::span(array.values)) : std::as_bytes(std::span(array.e4m3));
}

void put_array(const std::filesystem::path& path, const Array& array, std::int64_t tokens_behind) {
  const std::span<const std::byte> bytes = bytes_of(array);
  std::vector<std::byte> all(bytes.begin(), bytes.end());
  all.resize(all.size() + all.size() / array.tokens * tokens_behind, std::byte{0x47});
  const std::int64_t shape[] = {static_cast<std::int64_t>(all.size())};
  ASSERT_TRUE(io::write_npy(path, io::ElementType::kU8, shape, all)) << path;
}

void put_single(const std::filesystem::path& path, float value) {
  ASSERT_TRUE(io::write_npy(path, io::ElementType::kF32, {}, std::as_bytes(std::span(&value, 1)))) << path;
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
  void strides(unsigned token, unsigned head, unsigned batch, const Array& array, std::int64_t element) {
    scalar(token, array.heads * array.dim * element);
    scalar(head, array.dim * element);
    scalar(batch, array.tokens * array.heads * array.dim * element);
  }
  [[nodiscard]] const nlohmann::json& json() const { return list_; }

 private:
  nlohmann::json list_ = nlohmann::json::array();
};

nlohmann::json job_of(const Peer& peer, const Inputs& in, const Launch& launch) {
  const std::int64_t element = peer.format == Format::kBf16 ? 2 : 1;
  const Array& q = in.q;
  Array o{.batch = q.batch, .tokens = q.tokens, .heads = q.heads, .dim = peer.dim_v, .values = {}, .e4m3 = {}};
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
  args.strides(0x070, 0x090, 0x0a0, q, element);
  args.scalar(0x080, peer.query_tile * q.heads * q.dim * element);
  args.scalar(0x0b0, q.heads / in.k.heads);
  args.strides(0x0c0, 0x0d0, 0x0e0, in.k, element);
  args.scalar(0x0f0, 0);
  args.scalar(0x100, launch.lse == Lse::kOn ? 1 : 0);
  args.scalar(0x110, in.k.tokens);
  args.scalar(0x120, peer.dim_qk);
  args.scalar(0x130, peer.dim_v);
  args.scalar(0x140, q.heads);
  args.strides(0x150, 0x160, 0x170, in.v, element);
  args.strides(0x180, 0x190, 0x1a0, o, 2);
  args.scalar(0x1d0, q.tokens * 4);
  if (peer.format == Format::kE4m3) {
    args.buffer(0x200, "q_descale.npy");
    args.buffer(0x210, "k_descale.npy");
    args.buffer(0x220, "v_descale.npy");
  }
  args.scalar(0x280, 0);  // the last slot fixes the segment's size
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
  const double scale = static_cast<double>(inputs.softmax_scale) * inputs.q.descale * inputs.k.descale;
  Expected<reference::AttentionResult> result = reference::attention(
      {.q = inputs.q.view(), .k = inputs.k.view(), .v = inputs.v.view(), .mask = peer.mask, .softmax_scale = scale});
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
  const std::int64_t behind = peer.format == Format::kBf16 && launch.behind == Behind::kFinite ? kKeysReadBehind : 0;
  put_array(session / "q.npy", inputs.q, 0);
  put_array(session / "k.npy", inputs.k, behind);
  put_array(session / "v.npy", inputs.v, behind);
  put_single(session / "q_descale.npy", inputs.q.descale);
  put_single(session / "k_descale.npy", inputs.k.descale);
  put_single(session / "v_descale.npy", inputs.v.descale);
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
