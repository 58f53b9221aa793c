// Package jobspec reads Nomad job files as an agent does for /v1/jobs/parse.
//
// A file and the text of a file of variables go in; an api.Job comes out that is not
// canonicalised, or Nomad's own errors with their places. The tags of package api say
// which words the language has, so a block or key is known when its type has a field.
//
// The package never reads a file, and knows no locals, dynamic blocks, affinities, ports
// or labels of services, and of the functions only those that job files of this
// repository use.
package jobspec
