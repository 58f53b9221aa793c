package config

import (
	"fmt"
	"strings"
)

// reference is the page that documents every key. It depends on nothing of the machine.
func reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration of the controller

This page is generated from the table of keys; change it there and run
` + "`make generate`" + `. ` + "`pitchpipe config`" + ` prints the values in effect and the source of each.

A flag overrides the environment, the environment the file, and the file the default. An
unknown key is an error. The file is YAML; a dotted key is in nested blocks. It is the file
that ` + "`PITCHPIPE_CONFIG`" + ` names, else ` + "`$XDG_CONFIG_HOME/pitchpipe/controller.yaml`" + `, else
` + "`/etc/pitchpipe/controller.yaml`" + `; for ` + "`pitchpipe broker`" + ` first ` + "`/etc/pitchpipe/broker.yaml`" + `.

In a default ` + "`{run}`" + ` is /run/pitchpipe for root, else $XDG_RUNTIME_DIR/pitchpipe; ` + "`{home}`" + ` is
/var/lib/pitchpipe for root, else $XDG_STATE_HOME/pitchpipe or ~/.local/state/pitchpipe;
` + "`{state}`" + ` is the value of state. A change counts after a restart of the controller; where the
last column says live, a change of the named file counts at once.

`)
	b.WriteString("| key and flag | environment | default | allowed | meaning | reload |\n|---|---|---|---|---|---|\n")
	for _, k := range Keys() {
		reload := "restart"
		if k.Live {
			reload = "live"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s |\n", k.Name, k.variable(), k.shown(), k.Type.want, k.Help, reload)
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

For one job the blocks apply from the widest to the narrowest: built-in defaults, default,
partition, account, qos, user. For each field the narrowest block that sets it wins, whether
it allows more or less than the wider ones; ceilings apply knob by knob. A key marked
"default only" counts over the whole cluster.

Where the controller runs as root, the file and its directory have to belong to root
and group and others may not write to them.

`)
	b.WriteString("| key | allowed | meaning |\n|---|---|---|\n")
	for _, k := range siteKeys() {
		if k.Help == "" {
			continue // it is gone
		}
		want := k.Type.want
		if k.Wide {
			want += "; default only"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, want, k.Help)
	}
	return b.String()
}
