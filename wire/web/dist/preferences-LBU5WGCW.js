import{a as o}from"./chunk-6BIUNM2X.js";import"./chunk-VRN3DNFL.js";import"./chunk-NBMTKBVB.js";export{o as Preferences};
