import{a as o}from"./chunk-HZ7LD4XA.js";import"./chunk-SCRDIRDS.js";import"./chunk-WXGM42YK.js";import"./chunk-HDWUO6MI.js";export{o as Privacy};
