// Package certs holds a certificate with its key, and the authority whose
// certificates are believed of the other side, as their files say now.
//
// In come three PEM files; out goes what TLS needs of them. They are looked at again
// when something is asked, at most once a second, so that whoever renews a
// certificate restarts nothing; files that cannot be read leave what was there
// before. The package never writes a file and never makes a connection.
package certs
