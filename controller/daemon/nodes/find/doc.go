// Package find asks a service registry where the exporters of a cluster are.
//
// In come the name of a service and a client of Nomad or Consul; out go addresses by the
// name of the node, all of them at once: Nomad's services name the node's id, whose name
// is read once; Consul's catalogue names the node itself. The package keeps no answer but
// those names, connects to no exporter and believes nothing of what is registered:
// anybody who may run a job may register a service, so that whoever dials an address has
// to see the node's certificate there.
package find
