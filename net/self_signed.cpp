#include "net/self_signed.hpp"

#include "config/load.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <unistd.h>

namespace parley::net {
namespace {

constexpr long day_s = 24 * 3600;
constexpr long valid_s = 365 * day_s;
constexpr long renewed_before_s = 7 * day_s;

struct release {
  void operator()(X509* of) const { X509_free(of); }
  void operator()(EVP_PKEY* of) const { EVP_PKEY_free(of); }
  void operator()(X509_EXTENSION* of) const { X509_EXTENSION_free(of); }
  void operator()(std::FILE* of) const { std::fclose(of); }
};
template<class T>
using owned = std::unique_ptr<T, release>;

void must(bool done) {
  if (!done) throw std::runtime_error("OpenSSL cannot make a certificate");
}

void name(X509* cert) {
  X509_NAME* subject = X509_get_subject_name(cert);
  const auto* text = reinterpret_cast<const unsigned char*>("Parley");
  must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1);
  must(X509_set_issuer_name(cert, subject) == 1);
}

void extend(X509* cert, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, cert, cert, nullptr, nullptr, 0);
  const owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  must(extension && X509_add_ext(cert, extension.get(), -1) == 1);
}

/// The names under which clients reach this machine.
std::string alternative_names(const std::string& host) {
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  boost::system::error_code not_an_address;
  const auto address = boost::asio::ip::make_address(host, not_an_address);
  if (not_an_address) {
    // A comma would start another name.
    if (host != "localhost" && host.find_first_of(",:") == std::string::npos) names += ",DNS:" + host;
  } else if (!address.is_unspecified() && !address.is_loopback()) {
    names += ",IP:" + address.to_string();
  }
  return names;
}

owned<X509> sign(EVP_PKEY* key, const std::string& host) {
  owned<X509> cert(X509_new());
  must(cert && X509_set_version(cert.get(), 2) == 1);
  std::uint64_t serial = 0;
  must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  must(ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert.get()), serial >> 1) == 1);
  must(X509_gmtime_adj(X509_getm_notBefore(cert.get()), -day_s) != nullptr); // yesterday: clocks differ
  must(X509_gmtime_adj(X509_getm_notAfter(cert.get()), valid_s) != nullptr);
  must(X509_set_pubkey(cert.get(), key) == 1);
  name(cert.get());
  extend(cert.get(), NID_subject_alt_name, alternative_names(host));
  extend(cert.get(), NID_basic_constraints, "critical,CA:FALSE");
  extend(cert.get(), NID_ext_key_usage, "serverAuth");
  must(X509_sign(cert.get(), key, EVP_sha256()) != 0);
  return cert;
}

/// Writes a temporary file and renames it, so that nobody ever reads half a file.
void write(const std::filesystem::path& file, int permissions, const std::function<bool(std::FILE*)>& content) {
  std::error_code ec;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ec);
  const auto aside = file.string() + ".new";
  const int descriptor = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, permissions);
  owned<std::FILE> out(descriptor < 0 ? nullptr : ::fdopen(descriptor, "w"));
  if (!out && descriptor >= 0) ::close(descriptor);
  const bool written = out && content(out.get()) && std::fflush(out.get()) == 0;
  if (written) std::filesystem::rename(aside, file, ec);
  if (!written || ec) throw config::settings_error("tls: " + file.string() + " cannot be written");
}

} // namespace

void make_self_signed(const std::filesystem::path& cert, const std::filesystem::path& key, const std::string& host) {
  const owned<EVP_PKEY> pair(EVP_EC_gen("P-256"));
  must(pair != nullptr);
  const auto signed_by_itself = sign(pair.get(), host);
  write(key, 0600, [&](std::FILE* out) {
    return PEM_write_PrivateKey(out, pair.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1;
  });
  write(cert, 0644, [&](std::FILE* out) { return PEM_write_X509(out, signed_by_itself.get()) == 1; });
}

bool holds_for_a_while(const std::filesystem::path& cert) {
  const owned<std::FILE> in(std::fopen(cert.c_str(), "re"));
  if (!in) return false;
  const owned<X509> read(PEM_read_X509(in.get(), nullptr, nullptr, nullptr));
  if (!read) return false;
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(read.get())) != 1) return false;
  return days * day_s + seconds > renewed_before_s;
}

} // namespace parley::net
