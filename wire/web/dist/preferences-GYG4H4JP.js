import{a as o}from"./chunk-3SY6GTLB.js";import"./chunk-3SALCXDW.js";import"./chunk-MVXAIXHD.js";import"./chunk-A26DZ4BB.js";import"./chunk-S45M3N2T.js";export{o as Preferences};
