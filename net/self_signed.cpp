#include "net/self_signed.hpp"

#include "base/file_writes.hpp"
#include "config/load.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace parley::net {
namespace {

constexpr long day_s = 24 * 3600;
constexpr long valid_s = 365 * day_s;
constexpr std::string_view own_subject = "Parley";
constexpr long renewed_before_s = 7 * day_s;

struct release {
  void operator()(X509* of) const { X509_free(of); }
  void operator()(EVP_PKEY* of) const { EVP_PKEY_free(of); }
  void operator()(X509_EXTENSION* of) const { X509_EXTENSION_free(of); }
  void operator()(BIO* of) const { BIO_free(of); }
  void operator()(std::FILE* of) const { std::fclose(of); }
};
template<class T>
using owned = std::unique_ptr<T, release>;

void must(bool done) {
  if (!done) throw std::runtime_error("OpenSSL cannot make a certificate");
}

void name(X509* cert) {
  X509_NAME* subject = X509_get_subject_name(cert);
  const auto* text = reinterpret_cast<const unsigned char*>(own_subject.data());
  must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, static_cast<int>(own_subject.size()), -1, 0) ==
       1);
  must(X509_set_issuer_name(cert, subject) == 1);
}

void extend(X509* cert, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, cert, cert, nullptr, nullptr, 0);
  const owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  must(extension && X509_add_ext(cert, extension.get(), -1) == 1);
}

/// The names under which clients reach this machine, besides localhost.
std::vector<std::string> own_names(const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const std::string& host : hosts) {
    boost::system::error_code not_an_address;
    const auto address = boost::asio::ip::make_address(host, not_an_address);
    if (not_an_address) {
      // A comma would start another name.
      if (!host.empty() && host != "localhost" && host.find_first_of(",:") == std::string::npos) names.push_back(host);
    } else if (!address.is_unspecified() && !address.is_loopback()) {
      names.push_back(address.to_string());
    }
  }
  return names;
}

bool is_address(const std::string& name) {
  boost::system::error_code not_an_address;
  boost::asio::ip::make_address(name, not_an_address);
  return !not_an_address;
}

std::string alternative_names(const std::vector<std::string>& hosts) {
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  for (const std::string& name : own_names(hosts)) names += (is_address(name) ? ",IP:" : ",DNS:") + name;
  return names;
}

owned<X509> read_certificate(const std::filesystem::path& file) {
  const owned<std::FILE> in(std::fopen(file.c_str(), "re"));
  return owned<X509>(in ? PEM_read_X509(in.get(), nullptr, nullptr, nullptr) : nullptr);
}

owned<X509> sign(EVP_PKEY* key, const std::vector<std::string>& hosts) {
  owned<X509> cert(X509_new());
  must(cert && X509_set_version(cert.get(), 2) == 1);
  std::uint64_t serial = 0;
  must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  must(ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert.get()), serial >> 1) == 1);
  must(X509_gmtime_adj(X509_getm_notBefore(cert.get()), -day_s) != nullptr); // yesterday: clocks differ
  must(X509_gmtime_adj(X509_getm_notAfter(cert.get()), valid_s) != nullptr);
  must(X509_set_pubkey(cert.get(), key) == 1);
  name(cert.get());
  extend(cert.get(), NID_subject_alt_name, alternative_names(hosts));
  extend(cert.get(), NID_basic_constraints, "critical,CA:FALSE");
  extend(cert.get(), NID_ext_key_usage, "serverAuth");
  must(X509_sign(cert.get(), key, EVP_sha256()) != 0);
  return cert;
}

void write(const std::filesystem::path& file, unsigned permissions, const std::function<bool(BIO*)>& content) {
  const owned<BIO> out(BIO_new(BIO_s_mem()));
  must(out && content(out.get()));
  const char* text = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(out.get(), &text));
  try {
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    base::replace_file(file, {text, size}, false, permissions);
  } catch (const std::system_error& problem) {
    throw config::settings_error("tls: " + file.string() + " cannot be written: " + problem.code().message());
  }
}

} // namespace

void make_self_signed(const std::filesystem::path& cert, const std::filesystem::path& key,
                      const std::vector<std::string>& hosts) {
  const owned<EVP_PKEY> pair(EVP_EC_gen("P-256"));
  must(pair != nullptr);
  const auto signed_by_itself = sign(pair.get(), hosts);
  write(key, 0600, [&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, pair.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1;
  });
  write(cert, 0644, [&](BIO* out) { return PEM_write_bio_X509(out, signed_by_itself.get()) == 1; });
}

bool holds_for_a_while(const std::filesystem::path& cert) {
  const auto read = read_certificate(cert);
  if (!read) return false;
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(read.get())) != 1) return false;
  return days * day_s + seconds > renewed_before_s;
}

bool lacks_a_name(const std::filesystem::path& cert, const std::vector<std::string>& hosts) {
  const auto read = read_certificate(cert);
  if (!read || X509_NAME_cmp(X509_get_subject_name(read.get()), X509_get_issuer_name(read.get())) != 0) return false;
  std::array<char, 16> subject{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(read.get()), NID_commonName, subject.data(), subject.size());
  if (subject.data() != own_subject) return false;
  const auto names = own_names(hosts);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (is_address(name)) return X509_check_ip_asc(read.get(), name.c_str(), 0) != 1;
    return X509_check_host(read.get(), name.c_str(), name.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) != 1;
  });
}

} // namespace parley::net
