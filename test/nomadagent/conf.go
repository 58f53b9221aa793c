package nomadagent

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// common is the begin of both configurations. Nothing of it leaves loopback: no check for
// updates, no Consul, no request to a cloud about the machine.
func (p *program) common(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name = %q\n", "pitchpipe-"+name)
	fmt.Fprintf(&b, "data_dir = %q\n", filepath.Join(p.dir, name))
	b.WriteString(`bind_addr = "127.0.0.1"
log_level = "INFO"
disable_update_check = true
disable_anonymous_signature = true
leave_on_interrupt = false
leave_on_terminate = false
advertise {
  http = "127.0.0.1"
  rpc = "127.0.0.1"
  serf = "127.0.0.1"
}
consul {
  auto_advertise = false
  server_auto_join = false
  client_auto_join = false
}
`)
	fmt.Fprintf(&b, "acl {\n  enabled = %t\n  token_ttl = \"1s\"\n  policy_ttl = \"1s\"\n}\n", p.opts.ACL)
	return b.String()
}

func (p *program) serverConfig() string {
	return p.common("server") + fmt.Sprintf(`ports {
  http = %d
  rpc = %d
  serf = %d
}
server {
  enabled = true
  bootstrap_expect = 1
  raft_multiplier = 1
  event_buffer_size = %d
  default_scheduler_config {
    memory_oversubscription_enabled = %t
  }
}
`, p.ports[0], p.ports[1], p.ports[2], cmp.Or(p.opts.EventBuffer, 100), p.opts.Oversubscribe)
}

// clientConfig keeps what has ended, however full the disk is.
func (p *program) clientConfig() string {
	var limits strings.Builder
	if p.opts.MemoryMB > 0 {
		fmt.Fprintf(&limits, "  memory_total_mb = %d\n", p.opts.MemoryMB)
	}
	if n := p.opts.Cores; n > 0 && n < runtime.NumCPU() {
		fmt.Fprintf(&limits, "  reserved {\n    cores = \"%d-%d\"\n  }\n", n, runtime.NumCPU()-1)
	}
	if len(p.opts.Chroot) > 0 {
		limits.WriteString("  chroot_env {\n")
		for _, from := range slices.Sorted(maps.Keys(p.opts.Chroot)) {
			fmt.Fprintf(&limits, "    %q = %q\n", from, p.opts.Chroot[from])
		}
		limits.WriteString("  }\n")
	}
	for _, name := range slices.Sorted(maps.Keys(p.opts.Volumes)) {
		fmt.Fprintf(&limits, "  host_volume %q {\n    path = %q\n  }\n", name, p.opts.Volumes[name])
	}
	return p.common("client") + fmt.Sprintf(`ports {
  http = %d
}
client {
  enabled = true
  node_class = "test"
  servers = ["127.0.0.1:%d"]
  network_interface = "lo"
  gc_disk_usage_threshold = 100
  gc_inode_usage_threshold = 100
  gc_max_allocs = 5000
%s  options = {
    "fingerprint.denylist" = "env_aws,env_azure,env_digitalocean,env_gce,consul,vault,cni,bridge"
    "driver.allowlist" = "raw_exec,exec,mock_driver"
  }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
`, p.ports[3], p.ports[1], limits.String())
}
