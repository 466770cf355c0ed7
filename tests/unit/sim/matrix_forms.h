// Every matrix instruction of gfx950 as a table written from AMD's documents, and a way to run one instruction on given
// registers. For tests; nothing here comes from the simulator's own tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/program.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {

enum class Element { kF64, kF32, kF16, kBf16, kFp8, kBf8, kFp6, kBf6, kFp4, kI8 };

int bits_of(Element element);
double decode(Element element, std::uint64_t code);
// The code of a number that the format holds exactly. Fails the test when it does not.
std::uint64_t encode(Element element, double value);
// Largest n such that the format holds 0, 1, ... n.
int largest_integer(Element element);

struct Form {
  const char* mnemonic;
  int dim, k, blocks;
  Element a, b;
  int passes;
  bool sparse = false;
  const char* modifiers = "";

  [[nodiscard]] bool integer() const { return a == Element::kI8; }
  [[nodiscard]] bool f64() const { return a == Element::kF64; }
  [[nodiscard]] bool f8f6f4() const;
  [[nodiscard]] int k_of_a() const { return sparse ? k / 2 : k; }  // compressed k of a sparse A
  [[nodiscard]] int items_a() const { return k_of_a() * dim * blocks / 64; }
  [[nodiscard]] int items_b() const { return k * dim * blocks / 64; }
  [[nodiscard]] int words_a() const { return items_a() * bits_of(a) / 32; }
  [[nodiscard]] int words_b() const { return items_b() * bits_of(b) / 32; }
  [[nodiscard]] int words_d() const { return dim * dim * blocks / 64 * (f64() ? 2 : 1); }
};
const std::vector<Form>& all_forms();

// Where an element stands: AMD CDNA4 ISA guide 7.1.4, tables of 7.1.5.1 and 7.5.1.
struct Place {
  int lane, item;
};
Place place_a(const Form& form, int block, int row, int k);  // k compressed when sparse
Place place_b(const Form& form, int block, int k, int col);
Place place_d(const Form& form, int block, int row, int col);  // item: register, or pair of registers for f64

using Registers = std::vector<sim::VectorReg>;

// One instruction assembled and decoded for the simulator.
class Instruction {
 public:
  // `text` may name v0..v255 and a0..a255.
  explicit Instruction(const std::string& text);
  [[nodiscard]] const sim::MicroOp& op() const { return *op_; }
  void run(Registers& registers, SimAccumulation model = SimAccumulation::kFmaChain, std::uint32_t mode = 0xf0) const;
  static constexpr unsigned kAgprs = 256;  // row of a0

 private:
  sim::Program program_;
  const sim::MicroOp* op_ = nullptr;
};

// "v_mfma... v[0:15], v[64:67], v[96:99], v[32:47]" with the form's sizes: D in v0, C in v32 (`c` when given), A in
// v64, B in v96, the index of a sparse form in v128.
std::string text_of(const Form& form, const std::string& modifiers = "", const std::string& c = "");
inline constexpr int kD = 0, kC = 32, kA = 64, kB = 96, kIndex = 128;
inline constexpr int kRows = 512;

std::uint64_t get(const Registers& r, int first, int bits, Place place);
void set(Registers& r, int first, int bits, Place place, std::uint64_t code);

}  // namespace zyfa::sim_test
