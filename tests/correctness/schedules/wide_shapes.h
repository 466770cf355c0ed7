// Shapes and placements for waves of 64 queries: what two blocks of 32 queries of one wave can meet that one cannot,
// and the plainest placements that have two. 8-bit and BF16 attention are tested on the same shapes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace zyfa::tests {

struct WideShape {
  std::int64_t queries, keys, heads, key_heads;
  bool causal;
};

inline constexpr WideShape kWideShapes[] = {
    {243, 331, 3, 1, true},  // a boundary of iterations inside a wave, both blocks of the last wave ragged or not
    {70, 523, 2, 1, true},   // rows 64 to 69: the other block of that wave is past the end
    {70, 38, 2, 2, true},    // rows 0 to 31 see no key, rows 32 to 63 do
    {300, 100, 1, 1, true},  // the first workgroup's waves see nothing or little
    {33, 201, 7, 1, false},  // one row in the other block
    {32, 129, 1, 1, false},  // none
};

// Which of the cases above the shapes have, by counting rows; iterations are of 128 keys.
struct WideReach {
  bool block_past_the_end = false;    // block 0 of a wave has rows, block 1 has none
  bool block_without_keys = false;    // block 0 sees no key at all, block 1 does
  bool block_masked_earlier = false;  // an iteration has keys for block 1 but none for block 0, which had some before
  bool wave_past_the_end = false, ragged_rows = false, grouped_heads = false, other_length = false;
};

inline WideReach reach_of(const WideShape& shape) {
  constexpr std::int64_t kWave = 64, kBlock = 32, kGroup = 256, kIteration = 128;
  WideReach reach;
  // The number of keys that any row of a block sees.
  const auto seen = [&](std::int64_t row0) {
    if (row0 >= shape.queries) return std::int64_t{0};
    if (!shape.causal) return shape.keys;
    const std::int64_t last = std::min(row0 + kBlock, shape.queries) - 1;
    return std::clamp(last + 1 + shape.keys - shape.queries, std::int64_t{0}, shape.keys);
  };
  const auto iterations = [&](std::int64_t row0) { return (seen(row0) + kIteration - 1) / kIteration; };
  const std::int64_t rows = (shape.queries + kGroup - 1) / kGroup * kGroup;
  for (std::int64_t row0 = 0; row0 < rows; row0 += kWave) {
    const std::int64_t other = row0 + kBlock;
    reach.wave_past_the_end |= row0 >= shape.queries;
    reach.block_past_the_end |= row0 < shape.queries && other >= shape.queries;
    reach.block_without_keys |= seen(row0) == 0 && seen(other) > 0;
    reach.block_masked_earlier |= iterations(row0) > 0 && iterations(row0) < iterations(other);
  }
  reach.ragged_rows = shape.queries % kBlock != 0;
  reach.grouped_heads = shape.heads != shape.key_heads;
  reach.other_length = shape.queries != shape.keys;
  return reach;
}

inline WideReach reach_of_all() {
  WideReach all;
  for (const WideShape& shape : kWideShapes) {
    const WideReach one = reach_of(shape);
    all.block_past_the_end |= one.block_past_the_end;
    all.block_without_keys |= one.block_without_keys;
    all.block_masked_earlier |= one.block_masked_earlier;
    all.wave_past_the_end |= one.wave_past_the_end;
    all.ragged_rows |= one.ragged_rows;
    all.grouped_heads |= one.grouped_heads;
    all.other_length |= one.other_length;
  }
  return all;
}

inline bool complete(const WideReach& r) {
  return r.block_past_the_end && r.block_without_keys && r.block_masked_earlier && r.wave_past_the_end &&
         r.ragged_rows && r.grouped_heads && r.other_length;
}

// Nothing overlaps anything; fragments are read once for both blocks.
inline constexpr const char* kFp8WideNaive =
    "name=fp8_wide_naive;waves=4;queries=64;groups=1;loop=load_k_a,load_k_b,load_v_a,load_v_b|"
    "read_k_a,qk_a_q0,qk_a_q1,read_k_b,qk_b_q0,qk_b_q1,mask_a_q0,mask_b_q0,mask_a_q1,mask_b_q1,"
    "max_q0,rescale_q0,exponents_q0,prob_a_q0,prob_b_q0,max_q1,rescale_q1,exponents_q1,prob_a_q1,prob_b_q1,"
    "read_v_a,pv_a_q0,pv_a_q1,read_v_b,pv_b_q0,pv_b_q1,sum_a_q0,sum_b_q0,add_sums_q0,sum_a_q1,sum_b_q1,add_sums_q1";
// Fragments are read for each block; one block after the other, the second first.
inline constexpr const char* kFp8WideEach =
    "name=fp8_wide_each;waves=4;queries=64;groups=1;loop=load_k_a,load_k_b,load_v_a,load_v_b|"
    "read_k_a_q1,read_k_b_q1,qk_a_q1,qk_b_q1,mask_a_q1,mask_b_q1,max_q1,rescale_q1,exponents_q1,prob_a_q1,prob_b_q1,"
    "read_v_a_q1,pv_a_q1,read_v_b_q1,pv_b_q1,sum_a_q1,sum_b_q1,add_sums_q1,"
    "read_k_a_q0,read_k_b_q0,qk_a_q0,qk_b_q0,mask_a_q0,mask_b_q0,max_q0,rescale_q0,exponents_q0,prob_a_q0,prob_b_q0,"
    "read_v_a_q0,pv_a_q0,read_v_b_q0,pv_b_q0,sum_a_q0,sum_b_q0,add_sums_q0";
// The softmax of one block under the products of the other, by matrix cycles.
inline constexpr const char* kFp8WidePaced =
    "name=fp8_wide_paced;waves=4;queries=64;groups=1;buffers=k_a:3,k_b:3,v_a:3,v_b:3;"
    "loop={=sum_a_q0,sum_b_q0,pv_a_q0,pv_b_q0/read_k_a@1,read_k_b@1/"
    "mask_a_q1,mask_b_q1,max_q1,rescale_q1,exponents_q1,prob_a_q1},"
    "{=qk_a_q0@1,qk_b_q0@1/load_k_a@3,load_k_b@3/prob_b_q1},"
    "{=sum_a_q1,sum_b_q1,pv_a_q1,pv_b_q1/load_v_a@3,load_v_b@3/"
    "add_sums_q0,mask_a_q0@1,mask_b_q0@1,max_q0@1,rescale_q0@1,exponents_q0@1,prob_a_q0@1},"
    "{=qk_a_q1@1,qk_b_q1@1/read_v_a@1,read_v_b@1/prob_b_q0@1},add_sums_q1;math=scalar";

// With the loop of BF16 keys that near=bf16 has before that of the placement.
inline std::string behind_near_keys(const std::string& placement) {
  std::string text = placement;
  return text.insert(text.find("loop="),
                     "before=load_k,load_v|"
                     "qk_q0,mask_q0,max_q0,rescale_q0,prob_q0,pv_q0,qk_q1,mask_q1,max_q1,rescale_q1,prob_q1,pv_q1;");
}

inline constexpr const char* kBf16WideNaive =
    "name=wide_naive;waves=4;queries=64;groups=1;loop=load_k,load_v_first,load_v_rest|"
    "read_k0,qk0_q0,qk0_q1,read_k1,qk1_q0,qk1_q1,read_k2,qk2_q0,qk2_q1,read_k3,qk3_q0,qk3_q1,"
    "mask_q0,mask_q1,max_q0,max_q1,rescale_q0,rescale_q1,"
    "exp0_q0,exp1_q0,exp2_q0,exp3_q0,exp0_q1,exp1_q1,exp2_q1,exp3_q1,"
    "read_v0,pv0_q0,pv0_q1,read_v1,pv1_q0,pv1_q1,read_v2,pv2_q0,pv2_q1,read_v3,pv3_q0,pv3_q1";
inline constexpr const char* kBf16WideEach =
    "name=wide_each;waves=4;queries=64;groups=1;loop=load_k,load_v_first,load_v_rest|"
    "read_k0_q1,qk0_q1,read_k1_q1,qk1_q1,read_k2_q1,qk2_q1,read_k3_q1,qk3_q1,mask_q1,max_q1,rescale_q1,"
    "exp0_q1,exp1_q1,exp2_q1,exp3_q1,read_v0_q1,pv0_q1,read_v1_q1,pv1_q1,read_v2_q1,pv2_q1,read_v3_q1,pv3_q1,"
    "read_k0_q0,qk0_q0,read_k1_q0,qk1_q0,read_k2_q0,qk2_q0,read_k3_q0,qk3_q0,mask_q0,max_q0,rescale_q0,"
    "exp0_q0,exp1_q0,exp2_q0,exp3_q0,read_v0_q0,pv0_q0,read_v1_q0,pv1_q0,read_v2_q0,pv2_q0,read_v3_q0,pv3_q0";

}  // namespace zyfa::tests
