# SPDX-License-Identifier: Apache-2.0
"""An authority of the cluster's own and a certificate of its servers, by openssl: PEM files, valid on loopback."""

import os

from parts.process import running_command
from parts.programs import find

_DAYS = "365"
_OPENSSL_S = 120


def files(directory):
    """The paths by their use; `chain` is key and certificates in one, as Kafka reads them."""
    return {name: os.path.join(directory, f"{name}.pem") for name in ("ca", "cert", "key", "chain")}


def making(directory):
    """Steps: makes them where they are not there."""
    paths = files(directory)
    if os.path.exists(paths["chain"]):
        return
    os.makedirs(directory, mode=0o700, exist_ok=True)
    log = os.path.join(directory, "openssl.log")
    at = lambda name: os.path.join(directory, name)
    with open(at("extensions"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n"
                   "basicConstraints=CA:FALSE\n")
    key = ["-newkey", "rsa:2048", "-nodes"]
    for arguments in (
            ["req", "-x509", "-days", _DAYS, *key, "-subj", "/CN=weir trial authority", "-keyout", at("ca-key.pem"),
             "-out", paths["ca"]],
            ["req", *key, "-subj", "/CN=localhost", "-keyout", paths["key"], "-out", at("request.pem")],
            ["x509", "-req", "-days", _DAYS, "-in", at("request.pem"), "-CA", paths["ca"], "-CAkey", at("ca-key.pem"),
             "-set_serial", "1", "-extfile", at("extensions"), "-out", paths["cert"]]):
        yield from running_command([find("openssl"), *arguments], log, _OPENSSL_S)
    whole = b""
    for name in ("key", "cert", "ca"):
        with open(paths[name], "rb") as file:
            whole += file.read()
    with open(paths["chain"] + ".part", "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(whole)
    os.rename(paths["chain"] + ".part", paths["chain"])
