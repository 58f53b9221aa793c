// Package certs holds a certificate with its key, and the authority whose certificates are
// accepted from the other side.
//
// The input is three PEM files; the output is what TLS needs of them. The files are checked at
// most once a second when something is asked, so that a renewal needs no restart; files that
// cannot be read leave what was there before. The package never writes a file and never makes
// a connection.
package certs
