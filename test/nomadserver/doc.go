// Package nomadserver is the part of a Nomad cluster that a tuning controller meets:
// one server and one node in this process, behind Nomad's HTTP API.
//
// In come options (how many cores, how much memory, ACLs or none) and HTTP requests;
// out come answers with Nomad's indexes, texts and status codes, events, and tasks that
// really run as processes of this machine. What it does it does as a real agent was
// seen to do, oddities included: package facts holds both to the same sentences.
//
// It is for tests. It keeps nothing on the disk but the folders of allocations, knows
// one region, one datacenter and one node, makes no deployments, and listens on
// loopback only. What it does not know it answers with 404, never with an invention.
package nomadserver
