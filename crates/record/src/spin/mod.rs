//! What the spin-wait laboratory finds.

mod advice;
mod attach;
mod pause;
mod predict;
mod replay;
mod scan;

pub use advice::{AdviceRecord, SPIN_ADVICE_SCHEMA, SpinAdviceRecord};
pub use attach::{
    MatchStrength, SPIN_ATTACH_SCHEMA, SpinAttachRecord, SpinCaller, SpinKind, SpinMatch,
    SpinPlace, SpinShares, SpinThread,
};
pub use pause::{
    ChipRecord, CpuPauseRecord, CycleMethod, HintCostRecord, LevelRecord, PauseCheckRecord,
    SPIN_PAUSE_SCHEMA, SpinPauseRecord, TooLongRecord,
};
pub use predict::{
    CliffsRecord, MoveRecord, PredictionRecord, ProcessorRecord, SPIN_PREDICT_SCHEMA, SpinEvidence,
    SpinPredictRecord, SpinUnit, TunableRecord,
};
pub use replay::{
    ContentionCell, ReleaseSeen, ReplayCell, ReplayExperiment, ReplayHint, ReplayHintMade,
    ReplayMeasured, ReplayPrediction, ReplayedAlgorithm, SPIN_REPLAY_SCHEMA, SpinReplayRecord,
    WaitEnd,
};
pub use scan::{
    CodeArch, GapOnChip, MatchedAlgorithm, OuterLoop, SPIN_SCAN_SCHEMA, ScanChip, ScannedBinary,
    ScannedLoop, SkippedFile, SpinScan, UnknownGaps,
};
