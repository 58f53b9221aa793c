package config

import (
	"fmt"
	"strings"
)

// Reference is the page that documents every key, made from the tables that read
// them. It depends on nothing of the machine.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration of the controller

This page is generated from the table of keys; change it there and run
` + "`make generate`" + `.

Flags stand over the environment, the environment over the file, the file over the
defaults. A key that does not exist is an error. The file is YAML; a dotted key
stands in nested blocks. It is the file that ` + "`PITCHPIPE_CONFIG`" + ` names, else
` + "`$XDG_CONFIG_HOME/pitchpipe/controller.yaml`, else `/etc/pitchpipe/controller.yaml`" + `.

`)
	b.WriteString("| key and flag | environment | default | allowed | meaning |\n|---|---|---|---|---|\n")
	for _, k := range keys() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", k.name, k.variable(), k.shown(), strings.TrimPrefix(k.want, "want "), k.doc)
	}
	b.WriteString(`
# The site's policy

A stanza can only narrow what the site's policy allows. The file named by ` + "`site`" + `
holds a block ` + "`default`" + ` and blocks for single partitions (or namespaces), accounts,
QOS and users:

    default:
      max_mode: recommend
    partition:
      batch:
        max_mode: apply
        ceilings: {cores: 16, memory: 64GiB}
    user:
      alice:
        dry_run: true

For one job the blocks are laid over one another from the widest to the narrowest:
built-in defaults, default, partition, account, qos, user. For each field the
narrowest block that sets it wins, whether it allows more or less than the wider
ones; ceilings are laid over one another knob by knob. A key marked "default only"
counts over the whole cluster.

Where the controller runs as root, the file and its directory have to belong to root
and group and others may not write to them.

`)
	b.WriteString("| key | allowed | meaning |\n|---|---|---|\n")
	for _, k := range siteKeys() {
		want := k.want
		if k.wide {
			want += "; default only"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, want, k.doc)
	}
	return b.String()
}
