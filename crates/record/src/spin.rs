//! Records of the `spin` commands.

mod advice;
mod attach;
mod pause;
mod predict;
mod replay;
mod scan;

pub use advice::{AdviceRecord, SpinAdviceRecord};
pub use attach::{
    MatchStrength, SpinAttachRecord, SpinCaller, SpinKind, SpinMatch, SpinPlace, SpinShares,
    SpinThread,
};
pub use pause::{
    ChipRecord, CpuPauseRecord, CycleMethod, HintCostRecord, LevelRecord, PauseCheckRecord,
    SpinPauseRecord, TooLongRecord,
};
pub use predict::{
    CliffsRecord, MoveRecord, PredictionRecord, ProcessorRecord, SpinEvidence, SpinPredictRecord,
    SpinUnit, TunableRecord,
};
pub use replay::{
    ContentionCell, HintRecipe, ReleaseSeen, ReplayCell, ReplayExperiment, ReplayHint,
    ReplayMeasured, ReplayPrediction, ReplayedAlgorithm, SpinReplayRecord, WaitEnd,
};
pub use scan::{
    CodeArch, GapOnChip, MatchedAlgorithm, OuterLoop, ScanChip, ScannedBinary, ScannedLoop,
    SkippedFile, SpinScan, UnknownGaps,
};

/// The first of an algorithm's names: ".NET Framework Monitor"; without one its id.
fn first_name<'a>(name: &'a str, id: &'a str) -> &'a str {
    let first = name.split(" / ").next().unwrap_or_default();
    if first.is_empty() { id } else { first }
}
