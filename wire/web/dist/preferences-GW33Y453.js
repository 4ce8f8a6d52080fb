import{a as o}from"./chunk-KB4GKMI4.js";import"./chunk-GMIYXIUL.js";import"./chunk-UB5SEN3B.js";import"./chunk-Q2ZMPXWS.js";export{o as Preferences};
