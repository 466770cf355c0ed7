#include "tools/fp8_words.h"

namespace zyfa::tools {

std::vector<std::string> Fp8Words::list() const {
  std::vector<std::string> words;
  const auto flag = [&](bool given, const char* word) {
    if (given) {
      words.emplace_back(word);
    }
  };
  const auto value = [&](const char* name, const std::string& text) {
    if (!text.empty()) {
      words.push_back(name + text);
    }
  };
  flag(compute == "fp8", "compute=fp8");
  value("p=", probability);
  flag(blocks, "blocks");
  flag(unscaled, "unscaled");
  value("form=", form == "auto" ? "" : form);
  value("qk=", scores);
  flag(mixed, "near=bf16");
  value("sum=", row_sum);
  flag(rotate, "rotate");
  flag(no_rotate, "no-rotate");
  flag(smooth_k, "smooth-k");
  value("scales=", scales);
  value("u8=", byte_rounding);
  return words;
}

void add_fp8_options(CLI::App& command, Fp8Words& words) {
  constexpr const char* kGroup = "FP8";
  command
      .add_option("--compute", words.compute,
                  "input: in the type of the inputs; fp8: BF16 inputs are quantised by kernels of zyfa, then FP8")
      ->check(CLI::IsMember({"input", "fp8"}))
      ->capture_default_str()
      ->group(kGroup);
  const auto choice = [&](const char* name, std::string& value, const std::vector<std::string>& values,
                          const char* help) {
    command.add_option(name, value, help)->check(CLI::IsMember(values))->group(kGroup);
  };
  choice("--p", words.probability, {"lean", "exact"},
         "Probabilities. lean (default): a multiply-add and a conversion; exact: v_exp_f32");
  command.add_flag("--blocks", words.blocks, "Block exponents of the probabilities (the default)")->group(kGroup);
  command.add_flag("--unscaled", words.unscaled, "No block exponents")->group(kGroup);
  command
      .add_option("--form", words.form,
                  "folded: the matrix unit delivers 8 x + c, lean probabilities only; fma: a multiply-add does; auto: "
                  "folded where our quantiser chooses the scale and it applies. FP8 inputs in the folded form must "
                  "have descales that make 8 log2(e) softmax_scale q_descale k_descale a power of two")
      ->check(CLI::IsMember({"auto", "folded", "fma"}))
      ->capture_default_str()
      ->group(kGroup);
  choice("--qk", words.scores, {"fp8", "int8"}, "Element type of Q.K (default fp8); int8 needs --compute fp8");
  command
      .add_flag("--mixed", words.mixed,
                "The first and the diagonal keys from the BF16 inputs (near=bf16); needs --compute fp8")
      ->group(kGroup);
  choice("--sum", words.row_sum, {"auto", "sparse", "dense"},
         "Matrix product of the row sum: sparse, dense, or what is usual for the variant (default auto)");
  command.add_flag("--rotate", words.rotate, "Hadamard rotation of q and k before quantising (the default)")
      ->group(kGroup);
  command.add_flag("--no-rotate", words.no_rotate, "No rotation")->group(kGroup);
  command
      .add_flag("--smooth-k", words.smooth_k,
                "Subtract the mean key before quantising; without LSE (--no-lse) and not with --mixed")
      ->group(kGroup);
  choice("--scales", words.scales, {"head", "tensor"}, "Scales of the quantiser: one a key head (default), or one");
  choice("--u8", words.byte_rounding, {"nearest", "truncate"},
         "What the kernel takes v_cvt_pk_u8_f32 to do (default nearest); truncate goes with --rule "
         "cvt-pk-u8=truncates");
}

}  // namespace zyfa::tools
