#include "regatta/base/tls/certificate.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/tls/internal/openssl_handles.h"

namespace regatta::tls {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kNow = 1'800'000'000;
constexpr Seconds kDay{86400};

// The certificate as text, as OpenSSL describes it.
std::string described(const std::string& pem) {
  const auto certificate = parse_certificate(pem);
  if (!certificate) return certificate.error().message;
  const BioHandle memory(::BIO_new(::BIO_s_mem()));
  ::X509_print_ex(memory.get(), certificate->get(), 0, 0);
  char* begin = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &begin);
  return {begin, static_cast<std::size_t>(size)};
}

Identity authority() {
  return create_authority("test authority", kNow, kDay).value();
}

TEST(Certificate, OfAnAuthoritySignsOthersButNoFurtherAuthority) {
  const std::string text = described(authority().certificate);
  EXPECT_THAT(text, HasSubstr("CA:TRUE, pathlen:0"));
  EXPECT_THAT(text, HasSubstr("CN=test authority"));
}

TEST(Certificate, CarriesHostsAddressesAndUris) {
  const auto identity = issue(authority(),
                              {.common_name = "n1",
                               .hosts = {"n1.example", "10.0.0.1", "fd00::1"},
                               .uris = {"regatta://cluster/node/n1"}},
                              kNow, kDay);
  ASSERT_TRUE(identity) << identity.error().message;
  const std::string text = described(identity->certificate);
  EXPECT_THAT(text, HasSubstr("DNS:n1.example, IP Address:10.0.0.1, IP Address:FD00:0"));
  EXPECT_THAT(text, HasSubstr("URI:regatta://cluster/node/n1"));
  EXPECT_THAT(text, HasSubstr("CA:FALSE"));
  EXPECT_THAT(text, HasSubstr("TLS Web Server Authentication, TLS Web Client Authentication"));
}

TEST(Certificate, OfClientsIsNoServers) {
  const auto identity =
      issue(authority(), {.common_name = "n1", .uris = {"regatta://c/node/n1"}}, kNow, kDay);
  ASSERT_TRUE(identity);
  EXPECT_THAT(described(identity->certificate), Not(HasSubstr("TLS Web Server")));
}

TEST(Certificate, IsSignedForTheNamesOfTheCallerNotOfTheRequest) {
  const auto request = create_request(
      {.common_name = "root", .hosts = {"controller"}, .uris = {"regatta://cluster/node/other"}});
  ASSERT_TRUE(request) << request.error().message;
  const auto certificate =
      sign_request(authority(), request->request,
                   {.common_name = "n7", .uris = {"regatta://cluster/node/n7"}}, kNow, kDay);
  ASSERT_TRUE(certificate) << certificate.error().message;
  const std::string text = described(*certificate);
  EXPECT_THAT(text, HasSubstr("URI:regatta://cluster/node/n7"));
  EXPECT_THAT(text, HasSubstr("CN=n7"));
  EXPECT_THAT(text, Not(HasSubstr("other")));
  EXPECT_THAT(text, Not(HasSubstr("controller")));
}

TEST(Certificate, IsNotSignedForARequestThatWasChanged) {
  auto request = create_request({.common_name = "n7"});
  ASSERT_TRUE(request);
  // The last letters before the end are those of the signature.
  const std::size_t end = request->request.find("\n-----END");
  char& letter = request->request[end - 6];
  letter = letter == 'A' ? 'B' : 'A';
  const auto certificate =
      sign_request(authority(), request->request, {.common_name = "n7"}, kNow, kDay);
  ASSERT_FALSE(certificate);
  EXPECT_EQ(certificate.error().code, Code::kInvalidInput);
}

TEST(Certificate, EndsWhenItsLifetimeIsOver) {
  const auto identity = issue(authority(), {.common_name = "n1"}, kNow, Seconds{7 * 86400});
  ASSERT_TRUE(identity);
  EXPECT_EQ(valid_until(identity->certificate).value(), kNow + 7 * 86400);
}

TEST(Certificate, HasAHashThatTellsAuthoritiesApart) {
  const Identity first = authority();
  const std::string hash = certificate_hash(first.certificate).value();
  EXPECT_EQ(hash.size(), 64U);
  EXPECT_EQ(hash, certificate_hash(first.certificate).value());
  EXPECT_NE(hash, certificate_hash(authority().certificate).value());
}

TEST(Certificate, NamesThatEndEarlyForOtherReadersAreRefused) {
  using namespace std::string_literals;
  for (const std::string& host : {"a\0b"s, ""s, "a b"s, "a\n"s}) {
    const auto identity = issue(authority(), {.common_name = "n", .hosts = {host}}, kNow, kDay);
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, Code::kInvalidInput);
  }
}

TEST(Certificate, TextsThatAreNoneAreErrors) {
  EXPECT_FALSE(certificate_hash("hello"));
  EXPECT_FALSE(valid_until(""));
  EXPECT_FALSE(sign_request(authority(), "hello", {.common_name = "n"}, kNow, kDay));
  EXPECT_FALSE(issue({"x", "y"}, {.common_name = "n"}, kNow, kDay));
  Identity mixed = authority();
  mixed.private_key = authority().private_key;
  EXPECT_FALSE(issue(mixed, {.common_name = "n"}, kNow, kDay));
}

}  // namespace
}  // namespace regatta::tls
