package energy

import (
	"fmt"
	"strings"
)

// Known is a rule about sensors that are known.
type Known struct{ Rule, What string }

// KnownSensors are rules about sensors that are the power of a socket or of the machine.
// Every other sensor is ignored: rails of regulators, power supplies of which there may
// be several, disks, and graphics cards, whose joules come from their own source.
func KnownSensors() []Known {
	return []Known{
		{"amd_energy/Esocket{n}=package", "energy of AMD EPYC's sockets"},
		{"power_meter/Grace Power Socket {n}=package", "NVIDIA Grace: cores and memory of a socket"},
		{"power_meter/Module Power Socket *=ignore", "the same with its graphics card"},
		{"power_meter/CPU Power Socket *=ignore", "a part of it"},
		{"power_meter/SysIO Power Socket *=ignore", "a part of it"},
		{"power_meter=node", "ACPI's meter of the machine, graphics cards included"},
		{"occ/system=node", "POWER9 and POWER10: the machine"},
		{"ibmpowernv/System*=node", "POWER8: the machine"},
		{"fam15h_power=package", "AMD before Zen"},
		{"apm_xgene/CPU power=package", "X-Gene"},
	}
}

// DefaultSensors are the rules of KnownSensors.
func DefaultSensors() []string {
	known := KnownSensors()
	out := make([]string, len(known))
	for i, k := range known {
		out[i] = k.Rule
	}
	return out
}

// SensorsPage prints what is known of sensors as a page.
func SensorsPage() string {
	var b strings.Builder
	b.WriteString(`# Sensors of the board

Generated from ` + "`exporter/collector/energy/sensors.go` by `go test ./exporter/collector/energy -update`" + `.

Where a node has no RAPL, ` + "`pitchpipe-exporter`" + ` reads power and energy sensors of the board (hwmon). A
sensor counts if a rule says so; the first rule that fits its chip and its label holds. Rules
of ` + "`--energy.hwmon CHIP[/LABEL]=node|package|package:N|ignore`" + ` come before those below. CHIP is
what the file ` + "`name`" + ` says, LABEL what ` + "`powerN_label` or `powerN_oem_info`" + ` says, or the sensor's
own name such as ` + "`power1`; `*`" + ` stands for anything and ` + "`{n}`" + ` for the number of the socket.
Where a sensor counts the whole machine, those of sockets are shown only, and the joules of
graphics cards are taken out of it before it is shared out. Every other sensor is ignored: rails of regulators,
power supplies, disks, and graphics cards, which have a source of their own.

| rule | what it is |
|---|---|
`)
	for _, k := range KnownSensors() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Rule, k.What)
	}
	return b.String()
}
