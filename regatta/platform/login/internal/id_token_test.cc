#include "regatta/platform/login/internal/id_token.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>
#include <sodium.h>

namespace regatta::login {
namespace {

using testing::HasSubstr;
using Key = std::shared_ptr<EVP_PKEY>;

constexpr std::int64_t kNow = 1'800'000'000;

std::string base64url(std::string_view bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), kVariant);
  text.pop_back();
  return text;
}

std::string number_bytes(const Key& key, const char* name) {
  BIGNUM* number = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key.get(), name, &number), 1);
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> owner(number, BN_free);
  std::string bytes(static_cast<std::size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  return bytes;
}

// A point's coordinates have 32 bytes, with zeros in front.
std::string padded(const std::string& bytes) {
  return std::string(32 - bytes.size(), '\0') + bytes;
}

nlohmann::json rsa_jwk(const Key& key, const std::string& id) {
  return {{"kty", "RSA"},
          {"kid", id},
          {"n", base64url(number_bytes(key, OSSL_PKEY_PARAM_RSA_N))},
          {"e", base64url(number_bytes(key, OSSL_PKEY_PARAM_RSA_E))}};
}

nlohmann::json curve_jwk(const Key& key, const std::string& id) {
  return {{"kty", "EC"},
          {"crv", "P-256"},
          {"kid", id},
          {"x", base64url(padded(number_bytes(key, OSSL_PKEY_PARAM_EC_PUB_X)))},
          {"y", base64url(padded(number_bytes(key, OSSL_PKEY_PARAM_EC_PUB_Y)))}};
}

std::string der_signature(const Key& key, const std::string& text) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get());
  std::size_t size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                 text.size());
  signature.resize(size);
  return signature;
}

std::string halves_of(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> signature(
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())), ECDSA_SIG_free);
  std::string halves(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(halves.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + 32, 32);
  return halves;
}

// Keys take a while, so all tests share them.
struct TestKeys {
  Key rsa{EVP_RSA_gen(2048), EVP_PKEY_free};
  Key curve{EVP_EC_gen("P-256"), EVP_PKEY_free};
};

const TestKeys& keys() {
  static const TestKeys made;
  return made;
}

class IdTokenTest : public testing::Test {
 protected:
  std::string signed_by(const Key& key, nlohmann::json header) const {
    const std::string text = base64url(header.dump()) + "." + base64url(claims_.dump());
    const std::string der = der_signature(key, text);
    return text + "." + base64url(header["alg"] == "ES256" ? halves_of(der) : der);
  }
  std::string rsa_token() const { return signed_by(keys().rsa, {{"alg", "RS256"}, {"kid", "r"}}); }
  std::string curve_token() const {
    return signed_by(keys().curve, {{"alg", "ES256"}, {"kid", "c"}});
  }
  Result<nlohmann::json> verify(const std::string& token) const {
    return verify_id_token(token, known_, terms_, kNow);
  }
  std::string problem(const std::string& token) const {
    const auto verified = verify(token);
    return verified ? "" : verified.error().message;
  }

  nlohmann::json claims_ = {{"iss", "https://login.example"},
                            {"sub", "1"},
                            {"aud", "regatta"},
                            {"exp", kNow + 300},
                            {"iat", kNow},
                            {"nonce", "n"}};
  TokenTerms terms_{.issuer = "https://login.example", .client = "regatta", .nonce = "n"};
  std::vector<ProviderKey> known_ = *parse_provider_keys(
      nlohmann::json{{"keys", {rsa_jwk(keys().rsa, "r"), curve_jwk(keys().curve, "c")}}}.dump());
};

TEST_F(IdTokenTest, IsTakenWithBothAlgorithms) {
  ASSERT_EQ(known_.size(), 2U);
  EXPECT_EQ(problem(rsa_token()), "");
  EXPECT_EQ(problem(curve_token()), "");
  claims_["aud"] = {"regatta"};
  EXPECT_EQ(verify(curve_token())->at("sub"), "1");
}

TEST_F(IdTokenTest, IsRefusedForAnotherProgram) {
  claims_["aud"] = "other";
  EXPECT_THAT(problem(rsa_token()), HasSubstr("another program"));
  claims_["aud"] = {"regatta", "other"};
  EXPECT_THAT(problem(rsa_token()), HasSubstr("another program"));
  claims_["azp"] = "regatta";
  EXPECT_EQ(problem(rsa_token()), "");
  claims_["azp"] = "other";
  EXPECT_THAT(problem(rsa_token()), HasSubstr("another program"));
}

TEST_F(IdTokenTest, IsRefusedFromAnotherIssuer) {
  claims_["iss"] = "https://login.example.evil";
  EXPECT_THAT(problem(rsa_token()), HasSubstr("another issuer"));
}

TEST_F(IdTokenTest, IsRefusedOutsideItsTime) {
  claims_["exp"] = kNow - 59;
  EXPECT_EQ(problem(rsa_token()), "");
  claims_["exp"] = kNow - 60;
  EXPECT_THAT(problem(rsa_token()), HasSubstr("expired"));
  claims_["exp"] = "tomorrow";
  EXPECT_THAT(problem(rsa_token()), HasSubstr("expired"));
  claims_["exp"] = kNow + 300;
  claims_["iat"] = kNow + 61;
  EXPECT_THAT(problem(rsa_token()), HasSubstr("future"));
  claims_.erase("iat");
  EXPECT_THAT(problem(rsa_token()), HasSubstr("does not say when"));
  claims_["iat"] = kNow;
  claims_["nbf"] = kNow + 61;
  EXPECT_THAT(problem(rsa_token()), HasSubstr("not valid yet"));
}

TEST_F(IdTokenTest, IsRefusedForAnotherLogin) {
  claims_["nonce"] = "m";
  EXPECT_THAT(problem(rsa_token()), HasSubstr("another login"));
  claims_.erase("nonce");
  EXPECT_THAT(problem(rsa_token()), HasSubstr("another login"));
  claims_["nonce"] = "";
  terms_.nonce = "";
  EXPECT_THAT(problem(rsa_token()), HasSubstr("another login"));
}

TEST_F(IdTokenTest, IsRefusedWithoutASignature) {
  for (const char* algorithm : {"none", "None", "NONE", ""}) {
    const std::string text =
        base64url(nlohmann::json{{"alg", algorithm}}.dump()) + "." + base64url(claims_.dump());
    EXPECT_THAT(problem(text + "."), HasSubstr("is not taken")) << algorithm;
  }
  const std::string token = rsa_token();
  EXPECT_THAT(problem(token.substr(0, token.rfind('.') + 1)), HasSubstr("signature"));
}

// A provider's public key is no shared secret, though everybody knows it.
TEST_F(IdTokenTest, IsRefusedWithTheKeyAsASharedSecret) {
  const std::string text = base64url(nlohmann::json{{"alg", "HS256"}, {"kid", "r"}}.dump()) + "." +
                           base64url(claims_.dump());
  const std::string secret = number_bytes(keys().rsa, OSSL_PKEY_PARAM_RSA_N);
  unsigned char hash[32];
  unsigned int size = sizeof hash;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash, &size);
  const std::string token =
      text + "." + base64url({reinterpret_cast<const char*>(hash), sizeof hash});
  EXPECT_THAT(problem(token), HasSubstr("HS256 is not taken"));
}

TEST_F(IdTokenTest, IsRefusedWhenItWasChangedOrSignedByAnother) {
  std::string token = rsa_token();
  claims_["sub"] = "2";
  const std::string other = rsa_token();
  const std::size_t first = token.find('.');
  const std::size_t other_first = other.find('.');
  token = token.substr(0, first) + other.substr(other_first, other.rfind('.') - other_first) +
          token.substr(token.rfind('.'));
  EXPECT_THAT(problem(token), HasSubstr("signature"));
  const Key stranger(EVP_EC_gen("P-256"), EVP_PKEY_free);
  EXPECT_THAT(problem(signed_by(stranger, {{"alg", "ES256"}, {"kid", "c"}})),
              HasSubstr("signature"));
  // The key of one algorithm is none of the other.
  EXPECT_EQ(verify(signed_by(keys().rsa, {{"alg", "RS256"}, {"kid", "c"}})).error().code,
            Code::kNotFound);
}

TEST_F(IdTokenTest, AsksForNewKeysWhereItsKeyIsNotKnown) {
  EXPECT_EQ(verify(signed_by(keys().rsa, {{"alg", "RS256"}, {"kid", "new"}})).error().code,
            Code::kNotFound);
  EXPECT_EQ(problem(signed_by(keys().rsa, {{"alg", "RS256"}})), "");
}

TEST_F(IdTokenTest, IsRefusedWithExtensionsOrInAnotherForm) {
  EXPECT_THAT(problem(signed_by(keys().rsa, {{"alg", "RS256"}, {"crit", {"b64"}}})),
              HasSubstr("extensions"));
  for (const char* text : {"", ".", "..", "a.b", "a.b.c", "a.b.c.d", "e30.e30.e30", "=.=.="})
    EXPECT_FALSE(verify(text)) << text;
}

TEST(ProviderKeys, AreThoseThatAreStrongEnoughAndSign) {
  const Key weak(EVP_RSA_gen(1024), EVP_PKEY_free);
  nlohmann::json encrypts = rsa_jwk(keys().rsa, "e");
  encrypts["use"] = "enc";
  nlohmann::json off_curve = curve_jwk(keys().curve, "o");
  off_curve["y"] = off_curve["x"];
  const auto known = parse_provider_keys(nlohmann::json{
      {"keys", {rsa_jwk(weak, "w"), encrypts, off_curve, {{"kty", "oct"}, {"k", "AAAA"}}}}}
                                             .dump());
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->empty());
  for (const char* text : {"", "[]", "{}", R"({"keys":1})"})
    EXPECT_FALSE(parse_provider_keys(text)) << text;
}

}  // namespace
}  // namespace regatta::login
