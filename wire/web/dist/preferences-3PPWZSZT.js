import{a as o}from"./chunk-N4MVZ7MP.js";import"./chunk-TYORAKUX.js";import"./chunk-LSPAFTS4.js";import"./chunk-4QBYZBRM.js";export{o as Preferences};
