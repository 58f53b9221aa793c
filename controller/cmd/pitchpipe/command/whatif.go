package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate/whatif"
	"pitchpipe/controller/tuning"
)

func (a *app) whatif() *cobra.Command {
	var file, memory string
	var o whatif.Options
	const least = 1 << 20 // bytes; less is an amount that lacks its unit
	cmd := &cobra.Command{
		Use: "whatif --from-sacct FILE", Short: "Estimate what tuning would have brought this site",
		Long: "Simulate the jobs of an accounting as they were and as tuning would have changed them: fewer cores, less memory,\n" +
			"time limits by forecast, idle cores shared, and all together. Core-hours, waits and slowdowns have intervals, and the\n" +
			"assumptions stand below. Changes use only runs of the same user and name that had ended before. No\n" +
			"controller is asked. JobName comes last:\n" +
			"    TZ=UTC sacct -aPD -S 2026-01-01 -o JobID,User,Account,Partition,State,Submit,Start,Elapsed,Timelimit,AllocCPUS,NNodes,AllocTRES,TotalCPU,ReqMem,MaxRSS,NTasks,JobName\n" +
			"Without --nodes the cluster has as many cores as jobs held at the peak; --nodes needs --cores-per-node, which sacct does\n" +
			"not say. controller/evaluate/KEYS.md explains the keys of --json.",
		Example: "  pitchpipe whatif --from-sacct jobs.txt --nodes 40 --cores-per-node 32 --memory-per-node 128GiB",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := positive(cmd, "nodes", "cores-per-node"); err != nil {
				return err
			}
			if o.Shape.Nodes > 0 && o.Shape.CoresPerNode == 0 {
				return fmt.Errorf("%w --nodes %d: want --cores-per-node too, since sacct does not say how many cores a node has", errInvalid, o.Shape.Nodes)
			}
			if memory != "" {
				bytes, err := tuning.ParseBytes(memory)
				if err != nil {
					return invalid("--memory-per-node", err)
				}
				if bytes < least {
					return fmt.Errorf("%w --memory-per-node: %q is %d bytes: want an amount of memory such as 128GiB", errInvalid, memory, bytes)
				}
				o.Memory = int64(bytes)
			}
			l, err := a.readLog(joblog.Sacct, file)
			if err != nil {
				return err
			}
			r, err := whatif.Study(cmd.Context(), l, o, a.progress())
			r.Data = []string{file}
			return a.answer(err, r, "%s", r.Text())
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "from-sacct", "", "what sacct -P printed, gzip or not; - for the standard input")
	f.IntVar(&o.Shape.Nodes, "nodes", 0, "nodes of the cluster")
	f.IntVar(&o.Shape.CoresPerNode, "cores-per-node", 0, "cores of a node")
	f.StringVar(&memory, "memory-per-node", "", "memory of a node, such as 128GiB; without it no job waits for memory")
	_ = cmd.MarkFlagRequired("from-sacct")
	return cmd
}
