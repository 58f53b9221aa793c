// Package nomadserver is the part of a Nomad cluster that a tuning controller meets: one
// server and one node in this process, behind Nomad's HTTP API.
//
// Options and HTTP requests go in. Answers come out with Nomad's indexes, texts and status
// codes, and tasks that run as processes of this machine. What the server does it does as a
// real agent was seen to do, oddities included: package facts holds both to the same
// sentences. An unknown request is answered with 404.
//
// The server never keeps state on disk but the folders of allocations, never listens
// beyond loopback, and never has a second node, a deployment, an event stream, a filter
// or a difference of versions: no code of this repository asks for them.
package nomadserver
