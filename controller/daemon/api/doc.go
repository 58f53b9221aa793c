// Package api is how the command line and others talk to the controller: the
// wire types, the paths, and a client.
//
// In come job files to submit or to judge, and questions about jobs; out go
// statuses, stories, reports and what was learned, as JSON over HTTP on a Unix socket whose peer credentials
// name the caller. Users see and stop their own jobs, root all. The package
// decides nothing.
package api
