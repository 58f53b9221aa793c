// Package api is how the command line and others talk to the controller: the wire types,
// the paths, and a client.
//
// In go job files and questions about jobs; out come statuses, explanations, reports and
// knowledge, as JSON over HTTP on a Unix socket whose peer credentials name the caller.
// Users see and stop their own jobs, root all. The package never decides about a job.
package api
