import{a as o}from"./chunk-CC274B4P.js";import"./chunk-W7QKDDLG.js";import"./chunk-74UHNMBE.js";import"./chunk-HGMUO3WK.js";export{o as Preferences};
