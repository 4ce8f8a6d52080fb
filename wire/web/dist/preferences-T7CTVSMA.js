import{a as o}from"./chunk-AAVQ7M26.js";import"./chunk-CXF7STKK.js";import"./chunk-YU2QCQVI.js";import"./chunk-244JP7VZ.js";export{o as Preferences};
