import{a as o}from"./chunk-OOL5IK2J.js";import"./chunk-TYORAKUX.js";import"./chunk-LSPAFTS4.js";import"./chunk-4QBYZBRM.js";export{o as Privacy};
