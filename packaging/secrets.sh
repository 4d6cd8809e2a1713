#!/bin/sh
# Makes the secrets of packaging/compose.yaml, in folders that are volumes of it: in authority/ the key that signs certificates of nodes, and an
# API key; in gateway/ and worker/ the certificate that each shows the other, and for the gateway the hash of the API key. What is
# there and good for another month is left alone.
set -eu
umask 077
cd "${1:-/var/lib/parley}"
month=2592000
if [ ! -e authority/ca.pem ]; then
  openssl req -x509 -newkey rsa:3072 -nodes -days 3650 -subj "/CN=our nodes" -keyout authority/ca.key -out authority/ca.new
  mv authority/ca.new authority/ca.pem
fi
for node in gateway worker; do
  if openssl verify -CAfile authority/ca.pem $node/node.pem >/dev/null 2>&1 && openssl x509 -checkend $month -noout -in $node/node.pem >/dev/null; then
    continue
  fi
  openssl req -newkey rsa:3072 -nodes -subj "/CN=$node" -keyout $node/node.key -out authority/$node.csr
  openssl x509 -req -in authority/$node.csr -CA authority/ca.pem -CAkey authority/ca.key -CAcreateserial -days 825 -out $node/node.new
  cp authority/ca.pem $node/ca.pem
  mv $node/node.new $node/node.pem
done
if [ ! -e gateway/keys.txt ]; then
  openssl rand -hex 24 >authority/api-key
  echo "admin $(tr -d '\n' <authority/api-key | sha256sum | cut -d' ' -f1) admin" >gateway/keys.new
  mv gateway/keys.new gateway/keys.txt
fi
