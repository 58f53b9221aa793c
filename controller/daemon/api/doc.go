// Package api is the wire between the controller and its users: types, paths, and a client.
//
// Input: job files and questions about jobs. Output: statuses, stories, reports and what was
// learned, as JSON over HTTP on a Unix socket whose peer credentials name the caller: users see
// and stop their own jobs, root all. The package never decides anything.
package api
