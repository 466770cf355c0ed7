#include "tests/correctness/quantise/harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>

#include "runtime/kernel_key.h"
#include "runtime/sim/sim_device.h"
#include "schedules/compile.h"
#include "tests/reference/attention.h"

namespace zyfa::tests {
namespace {

constexpr std::uint16_t kNanBits = 0x7fff;
constexpr std::uint8_t kPattern = 0xa5;
constexpr std::int64_t kSlackRows = 40;  // behind the last row: more than two blocks of rows

void must(const Status& status) {
  if (!status) throw std::runtime_error(to_string(status.error()));
}

HostTensor gaussian_tensor(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t dim,
                           std::mt19937& random) {
  std::normal_distribution<double> normal(0.0, 1.0);
  HostTensor t{batch, tokens, heads, dim, {}};
  t.bits.resize(static_cast<std::size_t>(batch * tokens * heads * dim));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t s = 0; s < tokens; ++s) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const double size = std::exp2(static_cast<double>((3 * b + 5 * h) % 7) - 3.0);
        for (std::int64_t d = 0; d < dim; ++d) {
          const double offset = d % 16 == 3 ? 2.5 : 0.0;  // a few dims with a mean, as keys have
          t.row(b, s, h)[d] = reference::double_to_bf16(size * (normal(random) + offset));
        }
      }
    }
  }
  return t;
}

// Frees its buffers at the end.
class Buffers {
 public:
  explicit Buffers(SimDevice& device) : device_(device) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    for (DeviceAddress address : addresses_) device_.release(address);
  }

  DeviceAddress upload(std::span<const std::byte> bytes) {
    const DeviceAddress address =
        addresses_.emplace_back(device_.allocate(std::max<std::size_t>(bytes.size(), 1)).value());
    must(device_.write(address, bytes));
    return address;
  }

  TensorView tensor(const HostTensor& t, Layout layout) {
    const bool strided = layout == Layout::kStrided;
    const std::int64_t head_stride = t.dim + (strided ? 24 : 0);
    const std::int64_t token_stride = t.heads * head_stride + (strided ? 40 : 0);
    const std::int64_t batch_stride = t.tokens * token_stride + (strided ? 3 * token_stride + 8 : 0);
    const std::int64_t start = strided ? 16 : 0;
    std::vector<std::uint16_t> data(
        static_cast<std::size_t>(start + t.batch * batch_stride + (strided ? kSlackRows * token_stride : 0)), kNanBits);
    for (std::int64_t b = 0; b < t.batch; ++b) {
      for (std::int64_t s = 0; s < t.tokens; ++s) {
        for (std::int64_t h = 0; h < t.heads; ++h) {
          std::copy_n(t.row(b, s, h), t.dim,
                      data.data() + start + b * batch_stride + s * token_stride + h * head_stride);
        }
      }
    }
    const DeviceAddress address = upload(std::as_bytes(std::span(data)));
    return {address + 2 * static_cast<DeviceAddress>(start),
            t.batch,
            t.tokens,
            t.heads,
            t.dim,
            batch_stride,
            token_stride,
            head_stride,
            1};
  }

  TensorView spread(const HostTensor& t, const Strides& strides) {
    const std::int64_t span =
        (t.batch - 1) * strides.batch + (t.tokens - 1) * strides.token + (t.heads - 1) * strides.head + t.dim;
    const DeviceAddress address = addresses_.emplace_back(device_.allocate(2 * static_cast<std::size_t>(span)).value());
    for (std::int64_t b = 0; b < t.batch; ++b) {
      for (std::int64_t s = 0; s < t.tokens; ++s) {
        for (std::int64_t h = 0; h < t.heads; ++h) {
          const std::int64_t at = b * strides.batch + s * strides.token + h * strides.head;
          must(device_.write(address + 2 * static_cast<DeviceAddress>(at),
                             std::as_bytes(std::span(t.row(b, s, h), static_cast<std::size_t>(t.dim)))));
        }
      }
    }
    return {address, t.batch, t.tokens, t.heads, t.dim, strides.batch, strides.token, strides.head, 1};
  }

 private:
  SimDevice& device_;
  std::vector<DeviceAddress> addresses_;
};

// Kernels are compiled once a process and loaded once a machine.
Expected<const LoadedKernel*> loaded(Machine& machine, const schedules::KernelSpec& spec) {
  static std::map<std::string, schedules::CompiledKernel> compiled;
  const std::string key = make_key(spec)->name();
  if (const auto known = machine.kernels.find(key); known != machine.kernels.end()) return known->second.get();
  auto kernel = compiled.find(key);
  if (kernel == compiled.end()) {
    Expected<schedules::CompiledKernel> built = schedules::compile_kernel(spec);
    if (!built) return tl::unexpected(built.error());
    kernel = compiled.emplace(key, std::move(*built)).first;
  }
  Expected<std::shared_ptr<LoadedKernel>> loaded =
      machine.device->load(kernel->second.object, kernel->second.info.symbol);
  if (!loaded) return tl::unexpected(loaded.error());
  return machine.kernels.emplace(key, std::move(*loaded)).first->second.get();
}

Quantised fetch(SimDevice& device, const TensorView& codes, const DescaleView& descale) {
  Quantised out;
  out.codes.resize(static_cast<std::size_t>(codes.batch * codes.tokens * codes.heads * codes.dim));
  out.descales.resize(static_cast<std::size_t>(descale.batch * descale.heads));
  must(device.read(std::as_writable_bytes(std::span(out.codes)), codes.address));
  must(device.read(std::as_writable_bytes(std::span(out.descales)), descale.address));
  return out;
}

// The bytes between the codes' last and the next multiple of 256.
bool padding_kept(SimDevice& device, const TensorView& codes) {
  const auto bytes = static_cast<DeviceAddress>(codes.batch * codes.tokens * codes.heads * codes.dim);
  std::vector<std::uint8_t> padding((kWorkspaceAlignment - bytes % kWorkspaceAlignment) % kWorkspaceAlignment);
  must(device.read(std::as_writable_bytes(std::span(padding)), codes.address + bytes));
  return std::ranges::all_of(padding, [](std::uint8_t x) { return x == kPattern; });
}

struct Views {
  TensorView q, k, v;
};

Expected<Outputs> run_views(Machine& machine, const AttentionProblem& problem, Buffers& buffers, const Views& views,
                            float softmax_scale) {
  SimDevice& device = *machine.device;
  LaunchArgs args{.q = views.q, .k = views.k, .v = views.v, .out = {}, .softmax_scale = softmax_scale};
  const Expected<std::size_t> bytes = quantise_workspace_bytes(problem, args);
  if (!bytes) return tl::unexpected(bytes.error());
  const std::vector<std::uint8_t> blank(*bytes, kPattern);
  args.workspace = {buffers.upload(std::as_bytes(std::span(blank))), *bytes};
  const Expected<QuantisePlan> plan = plan_quantisation(problem, args);
  if (!plan) return tl::unexpected(plan.error());
  const std::vector<schedules::KernelSpec> specs = quantise_specs(problem);
  Outputs outputs;
  for (std::size_t i = 0; i < plan->count; ++i) {
    const QuantiseLaunch& launch = plan->launches[i];
    const auto kernel = loaded(machine, specs[launch.kernel]);
    if (!kernel) return tl::unexpected(kernel.error());
    const Status ran = device.launch(**kernel, launch.shape, std::as_bytes(std::span(&launch.args, 1)), nullptr);
    if (!ran) return tl::unexpected(ran.error());
    outputs.warnings += device.last_findings().size();
    outputs.launches.push_back(device.last_statistics());
  }
  outputs.q = fetch(device, plan->q, plan->q_descale);
  outputs.k = fetch(device, plan->k, plan->k_descale);
  outputs.v = fetch(device, plan->v, plan->v_descale);
  outputs.padding_untouched =
      padding_kept(device, plan->q) && padding_kept(device, plan->k) && padding_kept(device, plan->v);
  return outputs;
}

const std::vector<double>& e4m3_table() {
  static const std::vector<double> table = [] {
    std::vector<double> values;
    for (int code = 0; code < 256; ++code) values.push_back(e4m3_value(static_cast<std::uint8_t>(code)));
    return values;
  }();
  return table;
}

// Distance to the nearest code's value.
double nearest_distance(schedules::ElementType element, double y) {
  if (element == schedules::ElementType::kInt8) {
    return std::abs(y - std::clamp(std::nearbyint(y), -127.0, 127.0));
  }
  static const std::vector<double> sizes(e4m3_table().begin(), e4m3_table().begin() + 0x7f);  // in rising order
  const auto above = std::ranges::lower_bound(sizes, std::abs(y));
  if (above == sizes.end()) return std::abs(y) - sizes.back();
  const double below = above == sizes.begin() ? *above : *(above - 1);
  return std::min(*above - std::abs(y), std::abs(std::abs(y) - below));
}

double value_of(schedules::ElementType element, std::uint8_t code) {
  if (element == schedules::ElementType::kInt8) return static_cast<std::int8_t>(code);
  return e4m3_table()[code];
}

// The rows of one operand in double: rotated, then less the mean if asked.
struct Exact {
  std::vector<double> x;          // dense
  std::vector<double> noise;      // of each row: its rms, which float32 rounding errors of the rotation scale with
  std::vector<double> mean_size;  // of each (batch, key head): largest |mean|, plus largest |x| the mean was taken of
  std::vector<double> scale;      // of each (batch, key head); NaN: int8 with a value that is not finite
};

std::vector<double> rotation_matrix(std::int64_t n) {
  std::vector<double> m(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const bool odd = std::popcount(static_cast<std::uint64_t>(i & j)) % 2 != 0;
      m[static_cast<std::size_t>(i * n + j)] = (odd ? -1.0 : 1.0) / std::sqrt(static_cast<double>(n));
    }
  }
  return m;
}

void rotate_part(double* row, std::int64_t n) {
  static const std::vector<double> h128 = rotation_matrix(128), h64 = rotation_matrix(64);
  const std::vector<double>& m = n == 128 ? h128 : h64;
  std::vector<double> out(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      out[static_cast<std::size_t>(i)] += m[static_cast<std::size_t>(i * n + j)] * row[j];
  }
  std::copy(out.begin(), out.end(), row);
}

class Oracle {
 public:
  Oracle(const AttentionProblem& problem, const HostTensor& t, std::int64_t key_heads, schedules::Operand operand)
      : problem_(problem), t_(t), key_heads_(key_heads), operand_(operand) {
    const bool eight_bit_integers = problem.fp8.scores == ScoreType::kInt8 && operand != schedules::Operand::kValue;
    element_ = eight_bit_integers ? schedules::ElementType::kInt8 : schedules::ElementType::kFp8E4M3;
  }

  Exact run() {
    const bool rotates = problem_.fp8.rotation == Rotation::kHadamard && operand_ != schedules::Operand::kValue;
    for (std::uint16_t bits : t_.bits) exact_.x.push_back(reference::bf16_to_double(bits));
    for (std::size_t at = 0; at < exact_.x.size(); at += static_cast<std::size_t>(t_.dim)) {
      double* row = exact_.x.data() + at;
      if (rotates) {
        rotate_part(row, 128);
        if (t_.dim == 192) rotate_part(row + 128, 64);
      }
      double squares = 0;
      for (std::int64_t d = 0; d < t_.dim; ++d) squares += row[d] * row[d];
      exact_.noise.push_back(rotates ? std::sqrt(squares / static_cast<double>(t_.dim)) : 0.0);
    }
    exact_.mean_size.assign(static_cast<std::size_t>(t_.batch * key_heads_), 0.0);
    const bool smooths = problem_.fp8.smoothing == KeySmoothing::kMean && operand_ == schedules::Operand::kKey;
    if (smooths) subtract_means();
    find_scales();
    return std::move(exact_);
  }

 private:
  template <typename F>
  void each_row(std::int64_t b, std::int64_t key_head, F f) {
    const std::int64_t ratio = t_.heads / key_heads_;
    for (std::int64_t s = 0; s < t_.tokens; ++s) {
      for (std::int64_t h = key_head * ratio; h < (key_head + 1) * ratio; ++h) {
        f(exact_.x.data() + ((b * t_.tokens + s) * t_.heads + h) * t_.dim);
      }
    }
  }

  template <typename F>
  void each_entry(F f) {
    for (std::int64_t b = 0; b < t_.batch; ++b) {
      for (std::int64_t h = 0; h < key_heads_; ++h) f(b, h, static_cast<std::size_t>(b * key_heads_ + h));
    }
  }

  void subtract_means() {
    each_entry([&](std::int64_t b, std::int64_t h, std::size_t entry) {
      std::vector<double> mean(static_cast<std::size_t>(t_.dim), 0.0);
      double size = 0;
      each_row(b, h, [&](const double* row) {
        for (std::int64_t d = 0; d < t_.dim; ++d) {
          if (!std::isfinite(row[d])) continue;
          mean[static_cast<std::size_t>(d)] += row[d] / static_cast<double>(t_.tokens);
          size = std::max(size, std::abs(row[d]));
        }
      });
      for (const double m : mean) size = std::max(size, std::abs(m));
      exact_.mean_size[entry] = size;
      each_row(b, h, [&](double* row) {
        for (std::int64_t d = 0; d < t_.dim; ++d) row[d] -= mean[static_cast<std::size_t>(d)];
      });
    });
  }

  void find_scales() {
    const double limit = element_ == schedules::ElementType::kInt8 ? 127.0 : 448.0;
    double whole = 0;
    std::vector<double> largest;
    each_entry([&](std::int64_t b, std::int64_t h, std::size_t) {
      double most = 0;
      each_row(b, h, [&](const double* row) {
        for (std::int64_t d = 0; d < t_.dim; ++d) {
          if (std::isfinite(row[d])) {
            most = std::max(most, std::abs(row[d]));
          } else if (element_ == schedules::ElementType::kInt8) {
            most = std::numeric_limits<double>::infinity();
          }
        }
      });
      largest.push_back(most);
      whole = std::max(whole, most);
    });
    for (double most : largest) {
      if (problem_.fp8.scales == ScaleGranularity::kTensor) most = whole;
      exact_.scale.push_back(most == 0          ? 1.0
                             : std::isinf(most) ? std::numeric_limits<double>::quiet_NaN()
                                                : std::max(most / limit, std::exp2(-120)));
    }
  }

  const AttentionProblem& problem_;
  const HostTensor& t_;
  std::int64_t key_heads_;
  schedules::Operand operand_;
  schedules::ElementType element_{};
  Exact exact_;
};

class Comparison {
 public:
  Comparison(const char* name, const HostTensor& t, std::int64_t key_heads, schedules::ElementType element,
             const Exact& exact, const Quantised& got, std::uint64_t* near_ties)
      : name_(name), t_(t), key_heads_(key_heads), element_(element), exact_(exact), got_(got), near_ties_(near_ties) {}

  std::string run() {
    for (std::size_t i = 0; i < exact_.scale.size(); ++i) {
      const double expected = exact_.scale[i], got = got_.descales[i];
      const bool same = std::isnan(expected) ? std::isnan(got) : std::abs(got / expected - 1) <= 1e-6;
      if (!same) return said("descale", i, got, expected);
    }
    const std::int64_t ratio = t_.heads / key_heads_;
    for (std::size_t row = 0; row < exact_.noise.size(); ++row) {
      const auto n = static_cast<std::int64_t>(row);
      const std::int64_t b = n / (t_.tokens * t_.heads), h = n % t_.heads;
      const auto entry = static_cast<std::size_t>(b * key_heads_ + h / ratio);
      if (std::isnan(exact_.scale[entry])) continue;  // codes of such a head say nothing
      for (std::int64_t d = 0; d < t_.dim; ++d) {
        const std::size_t at = row * static_cast<std::size_t>(t_.dim) + static_cast<std::size_t>(d);
        if (std::string wrong = check_code(at, exact_.noise[row], entry); !wrong.empty()) return wrong;
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::string said(const char* what, std::size_t at, double got, double expected) const {
    std::ostringstream text;
    text.precision(10);
    text << name_ << " " << what << " " << at << ": got " << got << ", expected " << expected;
    return text.str();
  }

  std::string check_code(std::size_t at, double noise, std::size_t entry) {
    const double scale = exact_.scale[entry], y = exact_.x[at] / scale, got = value_of(element_, got_.codes[at]);
    if (!std::isfinite(y)) return std::isnan(got) ? std::string() : said("code of a value not finite", at, got, y);
    if (std::isnan(got)) return said("code", at, got, y);
    if (element_ == schedules::ElementType::kInt8 && got == -128) return said("code", at, got, y);
    // float32: a few units in the last place of the product, of the rotation's sums and of the mean.
    const double rounding = 1e-6 * std::abs(y) + (6e-7 * noise + 1e-6 * exact_.mean_size[entry]) / scale;
    const double nearest = nearest_distance(element_, y), distance = std::abs(y - got);
    if (distance > nearest + 2 * rounding) return said("code", at, got, y);
    if (distance > nearest && near_ties_ != nullptr) ++*near_ties_;
    return {};
  }

  const char* name_;
  const HostTensor& t_;
  std::int64_t key_heads_;
  schedules::ElementType element_;
  const Exact& exact_;
  const Quantised& got_;
  std::uint64_t* near_ties_;
};

// The folded scale of q, from the definition: the smallest s_q >= s for which 8 log2(e) |scale| s_q s_k is a power of
// two.
void fold(const Inputs& inputs, const Exact& k, Exact& q) {
  constexpr double kLog2E = 1.4426950408889634;
  const double softmax_scale = inputs.softmax_scale == 0 ? 1.0 : std::abs(static_cast<double>(inputs.softmax_scale));
  for (std::size_t i = 0; i < q.scale.size(); ++i) {
    const double unit = 8 * kLog2E * softmax_scale * k.scale[i];
    q.scale[i] = std::exp2(std::ceil(std::log2(q.scale[i] * unit) - 1e-7)) / unit;
  }
}

}  // namespace

std::string describe(const AttentionProblem& problem, const Shape& shape) {
  return to_string(problem) + " B=" + std::to_string(shape.batch) + " Sq=" + std::to_string(shape.queries) +
         " Sk=" + std::to_string(shape.keys) + " H=" + std::to_string(shape.heads) +
         " Hk=" + std::to_string(shape.key_heads);
}

AttentionProblem fp8_problem(std::uint32_t head_dim_qk, std::uint32_t head_dim_v) {
  return {.head_dim_qk = head_dim_qk, .head_dim_v = head_dim_v, .compute = Compute::kFp8};
}

Inputs gaussian_inputs(const AttentionProblem& problem, const Shape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  Inputs inputs;
  inputs.q = gaussian_tensor(shape.batch, shape.queries, shape.heads, problem.head_dim_qk, random);
  inputs.k = gaussian_tensor(shape.batch, shape.keys, shape.key_heads, problem.head_dim_qk, random);
  inputs.v = gaussian_tensor(shape.batch, shape.keys, shape.key_heads, problem.head_dim_v, random);
  return inputs;
}

Machine strict_machine() { return {sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 2}).value()}; }

double e4m3_value(std::uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 7 - 3);  // OCP e4m3, bias 7
  return (code & 0x80) != 0 ? -size : size;
}

Expected<Outputs> run(Machine& machine, const AttentionProblem& problem, const Inputs& inputs, Layout layout) {
  Buffers buffers(*machine.device);
  return run_views(
      machine, problem, buffers,
      {buffers.tensor(inputs.q, layout), buffers.tensor(inputs.k, layout), buffers.tensor(inputs.v, layout)},
      inputs.softmax_scale);
}

Expected<Outputs> run_spread(Machine& machine, const AttentionProblem& problem, const Inputs& inputs,
                             const Strides& strides) {
  Buffers buffers(*machine.device);
  return run_views(
      machine, problem, buffers,
      {buffers.spread(inputs.q, strides), buffers.spread(inputs.k, strides), buffers.spread(inputs.v, strides)},
      inputs.softmax_scale);
}

std::string check(const AttentionProblem& problem, const Inputs& inputs, const Outputs& outputs,
                  std::uint64_t* near_ties) {
  if (!outputs.padding_untouched) return "bytes behind the codes were written";
  if (outputs.warnings != 0) return std::to_string(outputs.warnings) + " strict warnings";
  const std::int64_t key_heads = inputs.k.heads;
  using schedules::ElementType, schedules::Operand;
  const ElementType scores = problem.fp8.scores == ScoreType::kInt8 ? ElementType::kInt8 : ElementType::kFp8E4M3;
  const Exact k = Oracle(problem, inputs.k, key_heads, Operand::kKey).run();
  const Exact v = Oracle(problem, inputs.v, key_heads, Operand::kValue).run();
  Exact q = Oracle(problem, inputs.q, key_heads, Operand::kQuery).run();
  const bool folds = scores == ElementType::kFp8E4M3 && problem.fp8.probability == Probability::kLean &&
                     problem.fp8.form != ScoreForm::kMultiplyAdd;
  if (folds) fold(inputs, k, q);
  std::string wrong = Comparison("k", inputs.k, key_heads, scores, k, outputs.k, near_ties).run();
  if (wrong.empty()) {
    wrong = Comparison("v", inputs.v, key_heads, ElementType::kFp8E4M3, v, outputs.v, near_ties).run();
  }
  if (wrong.empty()) wrong = Comparison("q", inputs.q, key_heads, scores, q, outputs.q, near_ties).run();
  return wrong;
}

}  // namespace zyfa::tests
