// Keys against bytes written by hand; equal fields give equal bytes and no others do.
#include "cache/key.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace zyfa::cache {
namespace {

using std::string_literals::operator""s;

// Written out by hand from the grammar in key.h.
TEST(Key, GoldenBytes) {
  const Key key = KeyBuilder(3).add_string("target", "gfx950").add_u64("dim", 0x0102030405060708u).build().value();
  const std::string expected = "ZKEY"s + "\x03\0\0\0"s + "\x02\0\0\0"s +                       // schema, count
                               "s"s + "\x06\0\0\0"s + "target"s + "\x06\0\0\0"s + "gfx950"s +  // a string field
                               "u"s + "\x03\0\0\0"s + "dim"s + "\x08\0\0\0"s +
                               "\x08\x07\x06\x05\x04\x03\x02\x01"s;  // a u64 field
  EXPECT_EQ(key.bytes, expected);
}

// Vectors of the XXH3-128 specification's reference (seed 0): the empty input, and the canonical, big-endian hex form.
TEST(Key, HashIsXxh3With128BitsInCanonicalForm) {
  EXPECT_EQ(to_hex(hash128({})), "99aa06d3014798d86001c324468d497f");
  const Hash128 hash{0x99aa06d3014798d8u, 0x6001c324468d497fu};
  EXPECT_EQ(hash128({}), hash);
  EXPECT_EQ(hash_from_hex("99aa06d3014798d86001c324468d497f"), hash);
}

TEST(Key, HexNamesThatToHexNeverWritesAreRefused) {
  EXPECT_FALSE(hash_from_hex(""));
  EXPECT_FALSE(hash_from_hex("99AA06D3014798D86001C324468D497F"));
  EXPECT_FALSE(hash_from_hex("99aa06d3014798d86001c324468d497"));
  EXPECT_FALSE(hash_from_hex("99aa06d3014798d86001c324468d497f0"));
  EXPECT_FALSE(hash_from_hex("99aa06d3014798d86001c324468d497g"));
}

TEST(Key, DecodeGivesBackTheFields) {
  const Key key = KeyBuilder(7).add_string("a", "x\0y"s).add_u64("b", 9).add_string("c", "").build().value();
  const DecodedKey decoded = decode_key(as_bytes(key.bytes)).value();
  EXPECT_EQ(decoded.schema, 7u);
  ASSERT_EQ(decoded.fields.size(), 3u);
  EXPECT_EQ(decoded.fields[0].name, "a");
  EXPECT_EQ(decoded.fields[0].text, "x\0y"s);
  EXPECT_EQ(decoded.fields[1].kind, FieldKind::kU64);
  EXPECT_EQ(decoded.fields[1].number, 9u);
  EXPECT_EQ(decoded.fields[2].text, "");
  EXPECT_EQ(describe(decoded), (std::vector<std::string>{"schema=7", "a=x\\x00y", "b=9", "c="}));
}

// Sequences that plain concatenation would confuse.
TEST(Key, DifferentFieldsGiveDifferentBytes) {
  const std::vector<std::function<void(KeyBuilder&)>> recipes = {
      [](KeyBuilder& b) { b.add_string("a", "b"); },
      [](KeyBuilder& b) { b.add_string("ab", ""); },
      [](KeyBuilder& b) { b.add_string("a", "b").add_string("c", ""); },
      [](KeyBuilder& b) { b.add_string("a", "bc"); },
      [](KeyBuilder& b) { b.add_string("a", "").add_string("b", ""); },
      [](KeyBuilder& b) { b.add_string("b", "").add_string("a", ""); },
      [](KeyBuilder& b) { b.add_u64("a", 98); },
      [](KeyBuilder& b) { b.add_string("a", "b\0\0\0\0\0\0\0"s); },
      [](KeyBuilder&) {},
  };
  std::set<std::string> bytes, names;
  for (const auto& recipe : recipes) {
    for (const std::uint32_t schema : {1u, 2u}) {
      KeyBuilder builder(schema);
      recipe(builder);
      const Key key = builder.build().value();
      bytes.insert(key.bytes);
      names.insert(key.name());
    }
  }
  EXPECT_EQ(bytes.size(), 2 * recipes.size());
  EXPECT_EQ(names.size(), 2 * recipes.size());
}

TEST(Key, FirstDifferenceNamesTheField) {
  const auto decoded = [](std::uint32_t schema, std::string_view dtype, std::uint64_t dim) {
    return decode_key(as_bytes(KeyBuilder(schema).add_string("dtype", dtype).add_u64("dim", dim).build()->bytes))
        .value();
  };
  const DecodedKey base = decoded(1, "bf16", 128);
  EXPECT_FALSE(first_difference(base, base));

  const auto schema = first_difference(base, decoded(2, "fp8", 64));
  EXPECT_EQ(schema->field, "schema");
  const auto dtype = first_difference(base, decoded(1, "fp8", 64));
  EXPECT_EQ(dtype->field, "dtype");
  EXPECT_EQ(dtype->first, "bf16");
  EXPECT_EQ(dtype->second, "fp8");
  const auto dim = first_difference(base, decoded(1, "bf16", 64));
  EXPECT_EQ(dim->field, "dim");
  EXPECT_EQ(dim->second, "64");

  DecodedKey longer = base;
  longer.fields.push_back({"lse", FieldKind::kU64, "", 1});
  EXPECT_EQ(first_difference(base, longer)->field, "lse");
  EXPECT_EQ(first_difference(base, longer)->first, "(absent)");
  EXPECT_EQ(first_difference(longer, base)->second, "(absent)");

  DecodedKey swapped = base;
  std::swap(swapped.fields[0], swapped.fields[1]);
  EXPECT_EQ(first_difference(base, swapped)->field, "order of fields");
}

TEST(Key, MisuseIsReportedByBuild) {
  EXPECT_EQ(KeyBuilder(1).add_string("", "x").build().error().code, ErrorCode::kInvalidArgument);
  const auto twice = KeyBuilder(1).add_string("dim", "x").add_u64("dim", 1).build();
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("'dim'"), std::string::npos);
  const auto large = KeyBuilder(1).add_string("schedule", std::string(kMaxKeyBytes, 'x')).build();
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("65536"), std::string::npos);
}

TEST(Key, TheLargestKeyBuildsAndDecodes) {
  // 12 bytes of head, 9 of prefixes, 1 of name.
  const Key key = KeyBuilder(1).add_string("n", std::string(kMaxKeyBytes - 22, 'x')).build().value();
  EXPECT_EQ(key.bytes.size(), kMaxKeyBytes);
  EXPECT_TRUE(decode_key(as_bytes(key.bytes)));
}

TEST(Key, DecodeRefusesWhatNoBuilderMakes) {
  const std::string good = KeyBuilder(1).add_string("a", "b").add_u64("c", 1).build()->bytes;
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_key(as_bytes(good).first(size))) << size;
  }
  EXPECT_FALSE(decode_key(as_bytes(good + "x")));
  EXPECT_FALSE(decode_key(as_bytes("XKEY" + good.substr(4))));

  std::string other_kind = good;
  other_kind[12] = 'q';
  EXPECT_FALSE(decode_key(as_bytes(other_kind)));
  const std::string short_number =
      "ZKEY"s + "\x01\0\0\0"s + "\x01\0\0\0"s + "u"s + "\x01\0\0\0"s + "a"s + "\x01\0\0\0"s + "b"s;
  EXPECT_FALSE(decode_key(as_bytes(short_number)));
  const std::string field = "s"s + "\x01\0\0\0"s + "a"s + "\0\0\0\0"s;
  EXPECT_TRUE(decode_key(as_bytes("ZKEY"s + "\x01\0\0\0"s + "\x01\0\0\0"s + field)));
  EXPECT_FALSE(decode_key(as_bytes("ZKEY"s + "\x01\0\0\0"s + "\x02\0\0\0"s + field + field)));
  EXPECT_FALSE(decode_key(as_bytes("ZKEY"s + "\x01\0\0\0"s + "\xff\xff\xff\xff"s + field)));
}

}  // namespace
}  // namespace zyfa::cache
