#include "regatta/platform/login/internal/id_token.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <sodium.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"

namespace regatta::login {
namespace {

constexpr std::size_t kTokenMax = 16384;
constexpr std::size_t kKeysMax = 32;
constexpr std::size_t kPartBytes = 32;  // of a coordinate or half of a signature of P-256
constexpr int kRsaBitsLeast = 2048;
constexpr int kRsaBitsMost = 8192;
constexpr std::string_view kRs256 = "RS256";
constexpr std::string_view kEs256 = "ES256";

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using BigNumber = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using ParamBuilder = std::unique_ptr<OSSL_PARAM_BLD, Freer<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freer<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using EcSignature = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG_free>>;

Error wrong(std::string_view what) {
  return {Code::kInvalidInput, fmt::format("the provider's token: {}; log in again", what)};
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

BigNumber number_of(std::string_view bytes) {
  return BigNumber(BN_bin2bn(bytes_of(bytes), static_cast<int>(bytes.size()), nullptr));
}

std::shared_ptr<EVP_PKEY> made_key(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) <= 0 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) <= 0)
    return nullptr;
  std::shared_ptr<EVP_PKEY> made(key, EVP_PKEY_free);
  // A point that is not on the curve, or a modulus that is none.
  const KeyContext check(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  if (!check || EVP_PKEY_public_check(check.get()) <= 0) return nullptr;
  return made;
}

std::shared_ptr<EVP_PKEY> rsa_key(std::string_view modulus, std::string_view exponent) {
  const BigNumber n = number_of(modulus);
  const BigNumber e = number_of(exponent);
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!n || !e || !builder || BN_num_bits(n.get()) < kRsaBitsLeast ||
      BN_num_bits(n.get()) > kRsaBitsMost || BN_num_bits(e.get()) > 64 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) <= 0 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) <= 0)
    return nullptr;
  return made_key("RSA", builder.get());
}

std::shared_ptr<EVP_PKEY> curve_key(std::string_view x, std::string_view y) {
  if (x.size() != kPartBytes || y.size() != kPartBytes) return nullptr;
  const std::string point = "\x04" + std::string(x) + std::string(y);  // uncompressed
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) <=
          0 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) <= 0)
    return nullptr;
  return made_key("EC", builder.get());
}

// Null where it is none that is taken.
std::shared_ptr<EVP_PKEY> key_of(const nlohmann::json& jwk, std::string& algorithm) {
  const auto part = [&](const char* name) {
    const auto bytes = decode_base64url(text_at(jwk, name));
    return bytes ? *bytes : std::string();
  };
  const std::string use = text_at(jwk, "use");
  if (!use.empty() && use != "sig") return nullptr;
  const std::string type = text_at(jwk, "kty");
  algorithm = type == "RSA" ? kRs256 : kEs256;
  if (const std::string given = text_at(jwk, "alg"); !given.empty() && given != algorithm)
    return nullptr;
  if (type == "RSA") return rsa_key(part("n"), part("e"));
  if (type == "EC" && text_at(jwk, "crv") == "P-256") return curve_key(part("x"), part("y"));
  return nullptr;
}

// The two halves of a signature as OpenSSL takes them.
std::string curve_signature(std::string_view halves) {
  if (halves.size() != 2 * kPartBytes) return "";
  const EcSignature signature(ECDSA_SIG_new());
  BigNumber r = number_of(halves.substr(0, kPartBytes));
  BigNumber s = number_of(halves.substr(kPartBytes));
  if (!signature || !r || !s || ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return "";
  static_cast<void>(r.release());
  static_cast<void>(s.release());
  unsigned char* bytes = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &bytes);
  if (size <= 0) return "";
  std::string made(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return made;
}

bool is_signed(std::string_view text, std::string_view signature, const ProviderKey& key) {
  const std::string bytes =
      key.algorithm == kEs256 ? curve_signature(signature) : std::string(signature);
  const DigestContext context(EVP_MD_CTX_new());
  return !bytes.empty() && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.key.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(bytes), bytes.size(), bytes_of(text),
                          text.size()) == 1;
}

Result<nlohmann::json> object_of(std::string_view part, std::string_view name) {
  const auto text = decode_base64url(part);
  if (!text) return wrong(fmt::format("its {} is not base64url", name));
  const auto root = JsonReader::parse(*text, name, {.size_max = kTokenMax, .depth_max = 8});
  if (!root || !root->raw().is_object()) return wrong(fmt::format("its {} is no object", name));
  return root->raw();
}

Result<const ProviderKey*> find_key(const nlohmann::json& header,
                                    const std::vector<ProviderKey>& keys) {
  const std::string algorithm = text_at(header, "alg");
  if (algorithm != kRs256 && algorithm != kEs256)
    return wrong(fmt::format("its algorithm {} is not taken", printable(algorithm, 20)));
  if (header.contains("crit")) return wrong("it has extensions that are not known");
  const std::string id = text_at(header, "kid");
  const ProviderKey* found = nullptr;
  int count = 0;
  for (const ProviderKey& key : keys) {
    if (key.algorithm != algorithm || (!id.empty() && key.id != id)) continue;
    found = &key;
    ++count;
  }
  if (count == 0) return Error{Code::kNotFound, wrong("no key of its id is known").message};
  if (count > 1) return wrong("it does not say which key has signed it");
  return found;
}

bool has_client(const nlohmann::json& claims, const std::string& client) {
  const nlohmann::json audience = claims.value("aud", nlohmann::json());
  const std::string party = text_at(claims, "azp");
  if (!party.empty() && party != client) return false;
  if (audience.is_string()) return audience == client;
  if (!audience.is_array()) return false;
  const bool is_in = std::find(audience.begin(), audience.end(), client) != audience.end();
  return is_in && (audience.size() == 1 || party == client);
}

Status check_claims(const nlohmann::json& claims, const TokenTerms& terms, std::int64_t now) {
  const auto time_at = [&](const char* key, double fallback) {
    const auto found = claims.find(key);
    return found != claims.end() && found->is_number() ? found->get<double>() : fallback;
  };
  const auto present = static_cast<double>(now);
  const double skew = terms.skew.value;
  if (text_at(claims, "iss") != terms.issuer) return wrong("another issuer has made it");
  if (!has_client(claims, terms.client)) return wrong("it is for another program");
  if (!(time_at("exp", 0) > present - skew)) return wrong("it has expired");
  if (!(time_at("iat", present + skew + 1) <= present + skew))
    return wrong("it was made in the future, or does not say when");
  if (!(time_at("nbf", 0) <= present + skew)) return wrong("it is not valid yet");
  if (terms.nonce.empty() || text_at(claims, "nonce") != terms.nonce)
    return wrong("it is of another login");
  if (text_at(claims, "sub").empty()) return wrong("it names nobody");
  return {};
}

}  // namespace

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<std::string> decode_base64url(std::string_view text) {
  std::string bytes(text.size(), '\0');
  std::size_t size = 0;
  const char* end = nullptr;
  const bool is_read = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()),
                                         bytes.size(), text.data(), text.size(), nullptr, &size,
                                         &end, sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
                       end == text.data() + text.size();
  if (!is_read) return Error{Code::kInvalidInput, "text: it is not base64url; encode it so"};
  bytes.resize(size);
  return bytes;
}

Result<std::vector<ProviderKey>> parse_provider_keys(std::string_view text) {
  REGATTA_TRY(root, JsonReader::parse(text, "keys", {.size_max = 1 << 20, .depth_max = 8}));
  const nlohmann::json set = root.raw();
  if (!set.is_object() || !set.contains("keys") || !set.at("keys").is_array())
    return Error{Code::kInvalidInput, "the provider's keys: no JWK set"};
  std::vector<ProviderKey> keys;
  for (const nlohmann::json& jwk : set.at("keys")) {
    if (!jwk.is_object() || keys.size() == kKeysMax) continue;
    ProviderKey key{.id = text_at(jwk, "kid"), .algorithm = {}, .key = {}};
    key.key = key_of(jwk, key.algorithm);
    if (key.key != nullptr) keys.push_back(std::move(key));
  }
  return keys;
}

Result<nlohmann::json> verify_id_token(std::string_view token, const std::vector<ProviderKey>& keys,
                                       const TokenTerms& terms, std::int64_t now) {
  const std::size_t first = token.find('.');
  const std::size_t second = token.rfind('.');
  if (token.size() > kTokenMax || first == std::string_view::npos || first == second ||
      token.substr(first + 1, second - first - 1).find('.') != std::string_view::npos)
    return wrong("it has not three parts");
  REGATTA_TRY(header, object_of(token.substr(0, first), "header"));
  REGATTA_TRY(key, find_key(header, keys));
  const auto signature = decode_base64url(token.substr(second + 1));
  if (!signature || !is_signed(token.substr(0, second), *signature, *key))
    return wrong("its signature is wrong");
  REGATTA_TRY(claims, object_of(token.substr(first + 1, second - first - 1), "claims"));
  REGATTA_TRY_DO(check_claims(claims, terms, now));
  return claims;
}

}  // namespace regatta::login
