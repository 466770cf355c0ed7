#include "tests/correctness/fp8/harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "runtime/launch.h"
#include "schedules/compile.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/select.h"
#include "tests/reference/eight_bit.h"

namespace zyfa::tests {
namespace {

using schedules::ElementType;
using schedules::KernelSpec;

constexpr std::int64_t kValueDim = 128;
constexpr std::uint8_t kNanCode = 0x7f;
constexpr std::uint16_t kPattern = 0xa5c3;
constexpr std::uint32_t kLsePattern = 0xa5c3a5c3;
constexpr double kLog2E = 1.4426950408889634;

// A [B, S, H, D] view inside a buffer with slack before, between and behind the rows.
template <typename T>
struct HostTensor {
  std::vector<T> data;
  std::int64_t start = 0, batch = 0, tokens = 0, heads = 0, dim = 0;
  std::int64_t batch_stride = 0, token_stride = 0, head_stride = 0;

  HostTensor(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d, Layout layout, T fill)
      : batch(b), tokens(s), heads(h), dim(d) {
    const std::int64_t piece = 16 / static_cast<std::int64_t>(sizeof(T));
    const bool strided = layout == Layout::kStrided;
    head_stride = d + (strided ? 3 * piece : 0);
    token_stride = h * head_stride + (strided ? 5 * piece : 0);
    batch_stride = s * token_stride + (strided ? 3 * token_stride + piece : 0);
    start = strided ? 2 * piece : 0;
    // Whole blocks of rows behind the last one, so that a kernel that reads on meets NaN and not the buffer's end.
    data.assign(static_cast<std::size_t>(start + b * batch_stride + (strided ? 130 * token_stride : 0)), fill);
  }

  [[nodiscard]] T* row(std::int64_t b, std::int64_t s, std::int64_t h) {
    return data.data() + start + b * batch_stride + s * token_stride + h * head_stride;
  }

  template <typename F>
  void for_each_row(F f) {
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t s = 0; s < tokens; ++s) {
        for (std::int64_t h = 0; h < heads; ++h) f(row(b, s, h), b, s, h);
      }
    }
  }

  [[nodiscard]] schedules::TensorArgs args(DeviceAddress base) const {
    const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(T); };
    return {base + bytes(start), bytes(token_stride), bytes(head_stride), bytes(batch_stride)};
  }
};

using Codes = HostTensor<std::uint8_t>;

Codes codes_tensor(const std::vector<std::uint8_t>& packed, std::int64_t b, std::int64_t s, std::int64_t h,
                   std::int64_t d, Layout layout) {
  Codes tensor(b, s, h, d, layout, kNanCode);
  const std::uint8_t* from = packed.data();
  tensor.for_each_row([&](std::uint8_t* row, auto...) {
    std::memcpy(row, from, static_cast<std::size_t>(d));
    from += d;
  });
  return tensor;
}

std::vector<std::uint8_t> random_codes(std::size_t count, double spread, std::uint32_t seed, ElementType element) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, spread);
  std::vector<std::uint8_t> codes(count);
  for (std::uint8_t& code : codes) {
    const double x = normal(random);
    code = element == ElementType::kInt8 ? static_cast<std::uint8_t>(reference::double_to_int8(20 * x))
                                         : reference::double_to_e4m3(x);
  }
  return codes;
}

void make_descales(const Fp8Case& c, Fp8Inputs& in) {
  std::mt19937 random(c.seed + 77);
  std::uniform_real_distribution<float> factor(0.6F, 1.5F);
  if (c.descales == Descales::kNone) return;
  const std::size_t count = c.descales == Descales::kPerHead ? static_cast<std::size_t>(c.batch * c.key_heads) : 1;
  const float grid = c.spec.element == ElementType::kInt8 ? 0.05F : 1.0F;  // codes are 20 times the values there
  for (std::size_t n = 0; n < count; ++n) {
    in.k_descale.push_back(grid * factor(random));
    in.v_descale.push_back(factor(random));
    float q = grid * factor(random);
    if (c.spec.form == schedules::ScoreForm::kFolded) {
      const double rest = 8 * kLog2E * std::abs(static_cast<double>(c.softmax_scale)) * in.k_descale.back();
      q = static_cast<float>(std::exp2(std::round(std::log2(q * rest))) / rest);
    }
    in.q_descale.push_back(q);
  }
}

// The inputs before quantisation: what the codes stand for, rounded to BF16. A descale that is NaN, as a NaN makes that
// of int8, leaves them as they are.
HostTensor<std::uint16_t> near_tensor(const std::vector<std::uint8_t>& codes, const std::vector<float>& descales,
                                      const Fp8Case& c, ElementType element, const Codes& like) {
  constexpr std::uint16_t kNan = 0x7fff;
  HostTensor<std::uint16_t> tensor(like.batch, like.tokens, like.heads, like.dim, c.layout, kNan);
  const std::uint8_t* from = codes.data();
  tensor.for_each_row([&](std::uint16_t* row, std::int64_t b, std::int64_t, std::int64_t h) {
    const auto index = static_cast<std::size_t>(b * c.key_heads + h / (like.heads / c.key_heads));
    const auto descale = static_cast<double>(descale_at(descales, index));
    for (std::int64_t d = 0; d < like.dim; ++d, ++from) {
      row[d] = reference::double_to_bf16(fp8_value(*from, element) * (std::isnan(descale) ? 1.0 : descale));
    }
  });
  return tensor;
}

Expected<const schedules::CompiledKernel*> build(const KernelSpec& spec) {
  static std::vector<std::pair<KernelSpec, std::unique_ptr<schedules::CompiledKernel>>> built;
  for (const auto& [known, kernel] : built) {
    if (known == spec) return kernel.get();
  }
  Expected<schedules::CompiledKernel> compiled = schedules::compile_kernel(spec);
  if (!compiled) return tl::unexpected(compiled.error());
  built.emplace_back(spec, std::make_unique<schedules::CompiledKernel>(std::move(*compiled)));
  return built.back().second.get();
}

bool only_views_written(HostTensor<std::uint16_t>& o, std::vector<std::uint32_t>& lse, const Fp8Case& c,
                        std::int64_t lse_stride) {
  o.for_each_row([](std::uint16_t* row, auto...) { std::fill(row, row + kValueDim, kPattern); });
  for (std::int64_t row = 0; row < c.batch * c.heads; ++row) {
    if (c.spec.lse == schedules::LseOutput::kNone) break;
    std::fill_n(lse.begin() + row * lse_stride, c.query_length, kLsePattern);
  }
  return std::ranges::all_of(o.data, [](std::uint16_t x) { return x == kPattern; }) &&
         std::ranges::all_of(lse, [](std::uint32_t x) { return x == kLsePattern; });
}

// Device buffers, released at the end of the scope.
class Buffers {
 public:
  explicit Buffers(SimDevice& device) : device_(device) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    for (DeviceAddress address : addresses_) device_.release(address);
  }
  template <typename T>
  DeviceAddress upload(const std::vector<T>& data) {
    const auto bytes = std::as_bytes(std::span(data));
    const Expected<DeviceAddress> address = device_.allocate(std::max<std::size_t>(bytes.size(), 4));
    if (!address) {
      status_ = tl::unexpected(address.error());
      return 0;
    }
    addresses_.push_back(*address);
    if (Status s = device_.write(*address, bytes); !s) status_ = s;
    return *address;
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  SimDevice& device_;
  std::vector<DeviceAddress> addresses_;
  Status status_;
};

schedules::DescaleArgs descale_args(Buffers& buffers, const std::vector<float>& values, const Fp8Case& c) {
  if (values.empty()) return {};
  const bool one = values.size() == 1;
  return {buffers.upload(values), one ? 0 : 4 * static_cast<std::uint64_t>(c.key_heads), one ? 0ULL : 4ULL};
}

}  // namespace

std::uint8_t* Fp8Inputs::q_row(std::int64_t b, std::int64_t s, std::int64_t h) {
  return q.data() + ((b * query_length + s) * heads + h) * dim;
}
std::uint8_t* Fp8Inputs::k_row(std::int64_t b, std::int64_t s, std::int64_t h) {
  return k.data() + ((b * key_length + s) * key_heads + h) * dim;
}
std::uint8_t* Fp8Inputs::v_row(std::int64_t b, std::int64_t s, std::int64_t h) {
  return v.data() + ((b * key_length + s) * key_heads + h) * kValueDim;
}

double fp8_value(std::uint8_t code, ElementType element) {
  return element == ElementType::kInt8 ? static_cast<double>(static_cast<std::int8_t>(code))
                                       : reference::e4m3_to_double(code);
}

float descale_at(const std::vector<float>& descales, std::size_t index) {
  if (descales.empty()) return 1.0F;
  return descales.size() == 1 ? descales[0] : descales[index];
}

Fp8Inputs make_fp8_inputs(const Fp8Case& c) {
  Fp8Inputs in;
  in.batch = c.batch;
  in.query_length = c.query_length;
  in.key_length = c.key_length;
  in.heads = c.heads;
  in.key_heads = c.key_heads;
  in.dim = c.spec.head_dim_qk;
  const auto count = [](std::int64_t a, std::int64_t b, std::int64_t h, std::int64_t d) {
    return static_cast<std::size_t>(a * b * h * d);
  };
  in.q = random_codes(count(c.batch, c.query_length, c.heads, in.dim), c.spread, 3 * c.seed, c.spec.element);
  in.k = random_codes(count(c.batch, c.key_length, c.key_heads, in.dim), c.spread, 3 * c.seed + 1, c.spec.element);
  in.v = random_codes(count(c.batch, c.key_length, c.key_heads, kValueDim), 1.0, 3 * c.seed + 2, ElementType::kFp8E4M3);
  make_descales(c, in);
  if (c.change) c.change(in);
  return in;
}

Expected<reference::AttentionResult> expected_fp8_attention(const Fp8Case& c, const Fp8Inputs& in) {
  const auto dequantise = [&](const std::vector<std::uint8_t>& codes, const std::vector<float>& descales,
                              std::int64_t heads, std::int64_t dim, ElementType element) {
    std::vector<double> values(codes.size());
    const std::int64_t group = heads / c.key_heads;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) / dim;
      const std::int64_t head = row % heads / group;
      const std::int64_t tokens = static_cast<std::int64_t>(codes.size()) / dim / heads / c.batch;
      const std::int64_t batch = row / heads / tokens;
      values[i] = fp8_value(codes[i], element) *
                  static_cast<double>(descale_at(descales, static_cast<std::size_t>(batch * c.key_heads + head)));
    }
    return values;
  };
  const std::vector<double> q = dequantise(in.q, in.q_descale, c.heads, in.dim, c.spec.element);
  const std::vector<double> k = dequantise(in.k, in.k_descale, c.key_heads, in.dim, c.spec.element);
  const std::vector<double> v = dequantise(in.v, in.v_descale, c.key_heads, kValueDim, ElementType::kFp8E4M3);
  const reference::DoubleCase problem{
      reference::dense_double_view(q.data(), c.batch, c.query_length, c.heads, in.dim),
      reference::dense_double_view(k.data(), c.batch, c.key_length, c.key_heads, in.dim),
      reference::dense_double_view(v.data(), c.batch, c.key_length, c.key_heads, kValueDim),
      c.spec.mask == schedules::MaskKind::kCausal ? reference::Mask::kCausal : reference::Mask::kFull,
      static_cast<double>(c.softmax_scale)};
  return reference::attention(problem, 1);
}

KernelSpec fp8_spec() {
  KernelSpec spec;
  spec.element = ElementType::kFp8E4M3;
  spec.lse = schedules::LseOutput::kWritten;
  return spec;
}

std::vector<KernelSpec> fp8_variants(std::uint32_t head_dim, schedules::MaskKind mask) {
  using schedules::BlockExponents, schedules::ProbabilityRule, schedules::ScoreForm;
  std::vector<KernelSpec> all;
  for (const ElementType element : {ElementType::kFp8E4M3, ElementType::kInt8}) {
    for (const ProbabilityRule rule : {ProbabilityRule::kLean, ProbabilityRule::kExact}) {
      for (const BlockExponents exponents : {BlockExponents::kUsed, BlockExponents::kNone}) {
        for (const ScoreForm form : {ScoreForm::kMultiplyAdd, ScoreForm::kFolded}) {
          if (form == ScoreForm::kFolded && (element == ElementType::kInt8 || rule == ProbabilityRule::kExact)) {
            continue;
          }
          KernelSpec spec = fp8_spec();
          spec.head_dim_qk = head_dim;
          spec.mask = mask;
          spec.element = element;
          spec.probability = rule;
          spec.block_exponents = exponents;
          spec.form = form;
          all.push_back(spec);
        }
      }
    }
  }
  return all;
}

std::string describe(const Fp8Case& c) {
  const KernelSpec& s = c.spec;
  std::string text = std::string(name_of(s.element)) + " d=" + std::to_string(s.head_dim_qk);
  for (std::string_view word : {name_of(s.mask), name_of(s.probability), name_of(s.block_exponents), name_of(s.form)}) {
    text += " " + std::string(word);
  }
  if (s.row_sum != schedules::RowSum::kAuto) text += " " + std::string(name_of(s.row_sum)) + "-sum";
  return text + " B=" + std::to_string(c.batch) + " Sq=" + std::to_string(c.query_length) +
         " Sk=" + std::to_string(c.key_length) + " H=" + std::to_string(c.heads) +
         " Hk=" + std::to_string(c.key_heads) + (c.layout == Layout::kStrided ? " strided" : " packed") +
         " seed=" + std::to_string(c.seed) + (s.lse == schedules::LseOutput::kNone ? " no-lse" : "") + " " +
         c.placement.substr(0, c.placement.find(';'));
}

Expected<const schedules::CompiledKernel*> fp8_kernel(const Fp8Case& c) {
  KernelSpec spec = c.spec;
  Expected<std::string> placement = schedules::resolve_placement(c.placement);
  if (!placement) return tl::unexpected(placement.error());
  spec.placement = *placement;
  return build(spec);
}

Expected<Fp8Output> launch_fp8_case(const Fp8Case& c, const Fp8Inputs& in, SimDevice& device) {
  const Expected<const schedules::CompiledKernel*> built = fp8_kernel(c);
  if (!built) return tl::unexpected(built.error());
  const schedules::KernelInfo& info = (*built)->info;
  return launch_fp8_object(c, in, {(*built)->object, info.symbol, info.waves, info.query_tile}, device);
}

Expected<Fp8Output> launch_fp8_object(const Fp8Case& c, const Fp8Inputs& in, const Fp8Object& kernel,
                                      SimDevice& device) {
  const Codes q = codes_tensor(in.q, c.batch, c.query_length, c.heads, in.dim, c.layout);
  const Codes k = codes_tensor(in.k, c.batch, c.key_length, c.key_heads, in.dim, c.layout);
  const Codes v = codes_tensor(in.v, c.batch, c.key_length, c.key_heads, kValueDim, c.layout);
  HostTensor<std::uint16_t> o(c.batch, c.query_length, c.heads, kValueDim, c.layout, kPattern);
  const std::int64_t lse_stride = c.query_length + (c.layout == Layout::kStrided ? 5 : 0);
  std::vector<std::uint32_t> lse(static_cast<std::size_t>(c.batch * c.heads * lse_stride + 64), kLsePattern);

  Buffers buffers(device);
  const DeviceAddress out = buffers.upload(o.data), out_lse = buffers.upload(lse);
  schedules::AttentionForwardArgs args{};
  args.q = q.args(buffers.upload(q.data));
  args.k = k.args(buffers.upload(k.data));
  args.v = v.args(buffers.upload(v.data));
  args.o = o.args(out);
  args.lse_address = out_lse;
  args.lse_head_stride = static_cast<std::uint64_t>(4 * lse_stride);
  args.lse_batch_stride = static_cast<std::uint64_t>(4 * lse_stride * c.heads);
  args.query_length = static_cast<std::int32_t>(c.query_length);
  args.key_length = static_cast<std::int32_t>(c.key_length);
  args.head_ratio_magic = head_ratio_magic(static_cast<std::uint32_t>(c.heads / c.key_heads));
  args.score_scale_log2 = static_cast<float>(static_cast<double>(c.softmax_scale) * kLog2E);
  args.q_descale = descale_args(buffers, in.q_descale, c);
  args.k_descale = descale_args(buffers, in.k_descale, c);
  args.v_descale = descale_args(buffers, in.v_descale, c);
  if (c.spec.near_keys == schedules::NearKeys::kBf16) {
    const auto near_args = [&](const auto& codes, const auto& descales, ElementType element, const Codes& like) {
      const HostTensor<std::uint16_t> tensor = near_tensor(codes, descales, c, element, like);
      return tensor.args(buffers.upload(tensor.data));
    };
    args.q_near = near_args(in.q, in.q_descale, c.spec.element, q);
    args.k_near = near_args(in.k, in.k_descale, c.spec.element, k);
    args.v_near = near_args(in.v, in.v_descale, ElementType::kFp8E4M3, v);
  }
  if (!buffers.status()) return tl::unexpected(buffers.status().error());

  const auto loaded = device.load(kernel.object, kernel.symbol);
  if (!loaded) return tl::unexpected(loaded.error());
  const std::int64_t query_tile = kernel.query_tile;
  const auto groups = static_cast<std::uint32_t>((c.query_length + query_tile - 1) / query_tile);
  const LaunchShape shape{.grid = {groups, static_cast<std::uint32_t>(c.heads), static_cast<std::uint32_t>(c.batch)},
                          .block = {64 * kernel.waves, 1, 1}};
  if (Status s = device.launch(**loaded, shape, std::as_bytes(std::span(&args, 1)), nullptr); !s) {
    return tl::unexpected(s.error());
  }
  if (Status s = device.read(std::as_writable_bytes(std::span(o.data)), out); !s) return tl::unexpected(s.error());
  if (Status s = device.read(std::as_writable_bytes(std::span(lse)), out_lse); !s) return tl::unexpected(s.error());

  Fp8Output output;
  o.for_each_row([&](const std::uint16_t* row, auto...) { output.o.insert(output.o.end(), row, row + kValueDim); });
  const bool with_lse = c.spec.lse == schedules::LseOutput::kWritten;
  for (std::int64_t row = 0; row < c.batch * c.heads && with_lse; ++row) {
    for (std::int64_t i = 0; i < c.query_length; ++i) {
      output.lse.push_back(std::bit_cast<float>(lse[static_cast<std::size_t>(row * lse_stride + i)]));
    }
  }
  output.outside_untouched = only_views_written(o, lse, c, lse_stride);
  return output;
}

Expected<reference::ErrorFigures> fp8_error(const Fp8Case& c, const reference::AttentionResult& expected,
                                            const Fp8Output& output) {
  return reference::compare(
      expected, reference::dense_view(output.o.data(), c.batch, c.query_length, c.heads, kValueDim), output.lse);
}

Expected<Fp8Outcome> run_fp8_case(const Fp8Case& c, SimDevice& device) {
  const Fp8Inputs in = make_fp8_inputs(c);
  Expected<Fp8Output> output = launch_fp8_case(c, in, device);
  if (!output) return tl::unexpected(output.error());
  const Expected<reference::AttentionResult> expected = expected_fp8_attention(c, in);
  if (!expected) return tl::unexpected(expected.error());
  const Expected<reference::ErrorFigures> figures = fp8_error(c, *expected, *output);
  if (!figures) return tl::unexpected(figures.error());
  return Fp8Outcome{std::move(*output), *figures};
}

std::vector<std::uint32_t> lse_bits(const Fp8Output& output) {
  std::vector<std::uint32_t> bits;
  for (const float value : output.lse) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace zyfa::tests
