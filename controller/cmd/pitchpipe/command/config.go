package command

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
)

type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"` // file:line:column, a variable, a flag, or default
}

func (a *app) config() *cobra.Command {
	return &cobra.Command{
		Use: "config [KEY…]", Short: "Print the configuration in effect and each value's source",
		Long: "Prints each key, its value, and whether a flag, a variable, a line of the file or the default\nset it. " +
			"Any key can be given as a flag. Of the broker: --config /etc/pitchpipe/broker.yaml.",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return tuning.Each(config.Keys(), func(k config.Key) string { return k.Name }), cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(_ *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.ContainsFunc(config.Keys(), func(k config.Key) bool { return k.Name == name }) {
					return fmt.Errorf("unknown key %q", name)
				}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var all []setting
			for _, k := range config.Keys() {
				if len(args) == 0 || slices.Contains(args, k.Name) {
					all = append(all, setting{k.Name, a.cfg.Texts[k.Name], cmp.Or(a.cfg.Given[k.Name], "default")})
				}
			}
			return a.said(all, "%s", report.List([]string{"KEY", "VALUE", "SOURCE"}, all, func(s setting) []string {
				return []string{s.Key, cmp.Or(s.Value, "-"), s.Source}
			}))
		},
	}
}
