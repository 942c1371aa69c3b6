import { type Invocation, UsageError } from "../command.ts";

/** Each script calls `sluice __complete` for candidates, under the name that the user typed. */
const COMPLETION_SCRIPTS = {
  bash: `# bash completion for sluice. To load it: source <(sluice completion bash)
_sluice() {
  local line="\${COMP_LINE:0:COMP_POINT}" answer directive word cut candidate
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word="\${words[\${#words[@]} - 1]}"
  answer=$("\${words[0]}" __complete "\${words[@]:1}" 2>/dev/null) || return
  directive="\${answer##*:}"
  # Bash replaces what follows the last = or : of the word.
  cut="\${word%"\${word##*[=:]}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    [[ $candidate == :* ]] || COMPREPLY+=("\${candidate#"$cut"}")
  done <<<"$answer"
  case $directive in
    0) ;;
    16) compopt +o default -o dirnames 2>/dev/null ;;
    *) compopt +o default 2>/dev/null ;;
  esac
}
complete -o default -F _sluice sluice kubectl-sluice
`,
  zsh: `#compdef sluice kubectl-sluice
# zsh completion for sluice. To load it: source <(sluice completion zsh)
_sluice() {
  local -a lines candidates
  local line text directive
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  directive="\${lines[-1]#:}"
  for line in "\${(@)lines[1,-2]}"; do
    text="\${line%%$'\\t'*}"
    if [[ $line == *$'\\t'* ]]; then
      candidates+=("\${text//:/\\\\:}:\${line#*$'\\t'}")
    else
      candidates+=("\${text//:/\\\\:}")
    fi
  done
  (( \${#candidates} )) && _describe 'sluice' candidates
  case $directive in
    0) compset -P '*='; _files ;;
    16) compset -P '*='; _files -/ ;;
  esac
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice kubectl-sluice; fi
`,
  fish: `# fish completion for sluice. To load it: sluice completion fish | source
function __sluice_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l lines ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
  set -l directive (string replace ':' '' -- $lines[-1])
  set -l prefix (string match -r -- '^--[^=]+=' "$word")
  set -l path (string replace -r -- '^--[^=]+=' '' "$word")
  set -e lines[-1]
  for line in $lines
    echo $line
  end
  switch "$directive"
    case 0
      __fish_complete_path "$path" | string replace -r '^' -- "$prefix"
    case 16
      __fish_complete_directories "$path" | string replace -r '^' -- "$prefix"
  end
end
complete -c sluice -f -a '(__sluice_complete)'
complete -c kubectl-sluice -f -a '(__sluice_complete)'
`,
  powershell: `# PowerShell completion for sluice. To load it: sluice completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName 'sluice', 'kubectl-sluice' -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
    if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
  })
  if ($words.Count -eq 0) { return }
  $rest = @($words | Select-Object -Skip 1)
  # Before 7.3 PowerShell drops an empty argument of a program, but passes two quotes on as one.
  $isLegacy = $PSVersionTable.PSVersion -lt [version]'7.3' -or $PSNativeCommandArgumentPassing -eq 'Legacy'
  $rest += if ($wordToComplete -ne '') { $wordToComplete } elseif ($isLegacy) { '""' } else { '' }
  $program = $words[0]
  $lines = @(& $program __complete @rest 2>$null)
  if ($lines.Count -eq 0) { return }
  $candidates = @($lines | Select-Object -SkipLast 1)
  # Without any result PowerShell offers files. An empty text keeps it from that.
  if ($candidates.Count -eq 0 -and $lines[-1] -eq ':4') { return '' }
  $candidates | ForEach-Object {
    $text, $description = $_ -split "\`t", 2
    if (-not $description) { $description = $text }
    [System.Management.Automation.CompletionResult]::new($text, $text, 'ParameterValue', $description)
  }
}
`,
} as const;

/** Prints one shell's script. */
export async function run({ operands }: Invocation): Promise<number> {
  const [shell = "", ...more] = operands;
  if (!isShell(shell) || more.length > 0) throw new UsageError("bash, zsh, fish or powershell is required");
  process.stdout.write(COMPLETION_SCRIPTS[shell]);
  return 0;
}

function isShell(text: string): text is keyof typeof COMPLETION_SCRIPTS {
  return Object.hasOwn(COMPLETION_SCRIPTS, text);
}
