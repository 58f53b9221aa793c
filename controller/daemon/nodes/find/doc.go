// Package find asks a service registry where the exporters of a cluster are.
//
// In go the name of a service and a client of Nomad or Consul; out come all addresses by
// the name of the node. Nomad's services name the node's id, whose name is read once;
// Consul's catalog names the node itself. The package never connects to an exporter and
// never trusts a registration: anyone who may run a job may register a service, so that
// whoever dials an address has to check the node's certificate.
package find
