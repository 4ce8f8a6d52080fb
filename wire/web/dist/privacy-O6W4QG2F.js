import{a as o}from"./chunk-N622ZNEX.js";import"./chunk-W7QKDDLG.js";import"./chunk-74UHNMBE.js";import"./chunk-HGMUO3WK.js";export{o as Privacy};
